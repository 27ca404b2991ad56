// SPDX-License-Identifier: Apache-2.0
// UTF-8, one character at a time. Strict: no overlong forms, no surrogates, nothing beyond
// U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace caisson {

// Bytes of the character at the start of `text`; 0 when there is no valid one.
std::size_t CharacterLength(std::string_view text);

bool IsAscii(std::string_view text);

// The code point of `character`, which must be one valid character.
std::uint32_t CodePoint(std::string_view character);

}  // namespace caisson
