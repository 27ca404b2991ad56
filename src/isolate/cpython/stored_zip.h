// SPDX-License-Identifier: Apache-2.0
// Lists a zip archive whose members are stored as they are, so that they can be used in place.
// Reads no other kind; no input makes it read outside its bytes.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"

namespace caisson::isolate::cpython {

// Both are parts of the archive.
struct ZipMember {
  std::string_view name;
  std::string_view bytes;
};

// Fails with wasm.artifact.
Result<std::vector<ZipMember>> ListStoredZip(std::string_view archive);

}  // namespace caisson::isolate::cpython
