// SPDX-License-Identifier: Apache-2.0
// SHA-256 of bytes or of a file as lower-case hex.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace caisson::wasm {

std::string Sha256Hex(std::string_view bytes);

// Of the whole file, read piece by piece. Fails with os.syscall.
Result<std::string> Sha256HexOfFile(int fd);

}  // namespace caisson::wasm
