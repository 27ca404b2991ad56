// SPDX-License-Identifier: Apache-2.0
// Reads an artifact whole and checks it against its pin before anybody uses a byte of it.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace caisson::wasm {

// Fails with wasm.artifact when the file is missing, unreadable or not the pinned bytes.
Result<std::string> LoadArtifact(const std::string& path, std::string_view sha256);

}  // namespace caisson::wasm
