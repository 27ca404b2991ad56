// SPDX-License-Identifier: Apache-2.0
// UTF-8, one character at a time. Strict: no overlong forms, no surrogates, nothing beyond
// U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace caisson {

// Bytes of the character at the start of `text`; 0 when there is no valid one.
std::size_t CharacterLength(std::string_view text);

bool IsAscii(std::string_view text);

// The beginning of a text for a message: at most `most` bytes, cut between characters and then
// followed by "…"; bytes that are no UTF-8 come out as U+FFFD (and may make it a little longer).
std::string Shortened(std::string_view text, std::size_t most);

// The code point of `character`, which must be one valid character.
std::uint32_t CodePoint(std::string_view character);

}  // namespace caisson
