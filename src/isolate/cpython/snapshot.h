// SPDX-License-Identifier: Apache-2.0
// A template's memory with what must be known to go on from it, and the files that it is kept in.
// A Snapshot is immutable and thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "wasm/checked_files.h"
#include "wasm/memory_image.h"

namespace caisson::isolate::cpython {

struct Snapshot {
  std::string set;
  std::shared_ptr<const wasm::MemoryImage> image;
  std::int32_t stack_pointer = 0;
  std::uint32_t entry_address = 0;  // of the source that a run begins with
  std::uint32_t entry_size = 0;
  std::string about;      // JSON: python, modules, versions; what the template said of itself
  std::int64_t made = 0;  // seconds since 1970
};

// Snapshots on disk, in a directory that is its owner's alone: an image, which all processes share
// that map it, and a small file that says what it is. An image is used only when its sha256 holds.
// Thread-safe but for `checked`; processes may share the directory.
class SnapshotStore {
 public:
  // `directory` has been checked (wasm::ModuleCache::Open). `max_bytes` of all images together:
  // what was used least recently goes first, never what was just written.
  SnapshotStore(std::string directory, std::uint64_t max_bytes)
      : directory_(std::move(directory)), max_bytes_(max_bytes) {}

  // Empty: there is no good entry, or one older than `max_age`. Fails with os.syscall when its
  // image cannot be mapped.
  Result<std::optional<Snapshot>> Load(std::string_view key, std::chrono::hours max_age,
                                       wasm::CheckedFiles& checked) const;
  // Whether Load has something to load; false, too, of an image that cannot be read.
  bool Has(std::string_view key, std::chrono::hours max_age, wasm::CheckedFiles& checked) const;
  // Fails with wasm.cache.
  Result<void> Save(std::string_view key, const Snapshot& snapshot) const;

 private:
  std::string PathFor(std::string_view key) const;
  std::string ImagePath(std::string_view digest) const;
  void Evict(const std::string& kept) const;

  std::string directory_;
  std::uint64_t max_bytes_;
};

}  // namespace caisson::isolate::cpython
