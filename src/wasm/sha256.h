// SPDX-License-Identifier: Apache-2.0
// SHA-256 of bytes as lower-case hex.
#pragma once

#include <string>
#include <string_view>

namespace caisson::wasm {

std::string Sha256Hex(std::string_view bytes);

}  // namespace caisson::wasm
