// SPDX-License-Identifier: Apache-2.0
// Text that somebody else wrote (authors, guests, names of files), made fit to stand in what we say
// to people: it cannot steer a terminal, cannot turn the direction of what follows, cannot pass for
// a line of ours, and is not endless. Everything foreign that goes to a terminal or a log goes
// through here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace caisson {

inline constexpr std::size_t kShownBytes = 4096;

// Controls (C0, DEL, C1), marks that turn the direction of text, line separators, and characters
// that nobody sees.
bool IsUnsafeToShow(std::uint32_t code_point);

// "\x1b", "\u202e", "\U000e0041": how such a character is shown.
std::string EscapeOf(std::uint32_t code_point);

// On as many lines as the text has: each but the first begins with `mark`. Unsafe characters and
// bytes that are no UTF-8 are escaped, tabs stay. Of a text of more than `max_bytes` the beginning
// is shown, and how many bytes are left out. Ends without a line end of its own.
std::string ShowForeign(std::string_view text, std::string_view mark = "  | ",
                        std::size_t max_bytes = kShownBytes);

// The same on one line; line ends and tabs are escaped too.
std::string ShowForeignLine(std::string_view text, std::size_t max_bytes = kShownBytes);

// `json`, a JSON text (or a piece of one that ends between characters), with unsafe characters
// written as \u escapes: the same document.
std::string SafeJson(std::string_view json);
// True only when SafeJson would give the same text; quick.
bool IsSafeJson(std::string_view json);

}  // namespace caisson
