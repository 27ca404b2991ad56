// SPDX-License-Identifier: Apache-2.0
// Reads an artifact whole and checks it against its pin before anybody uses a byte of it.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "wasm/checked_files.h"

namespace caisson::wasm {

// Fails with wasm.artifact when the file is missing, unreadable or not the pinned bytes.
Result<std::string> LoadArtifact(const std::string& path, std::string_view sha256);

// A file in memory, to read, shared with all processes that map it.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::string_view bytes() const { return bytes_; }

 private:
  friend Result<MappedFile> MapArtifact(const std::string& path, std::string_view sha256,
                                        CheckedFiles& checked);
  std::string_view bytes_;
};

// The same, for an artifact that is read in place; `checked` sees to its sha256.
Result<MappedFile> MapArtifact(const std::string& path, std::string_view sha256,
                               CheckedFiles& checked);

}  // namespace caisson::wasm
