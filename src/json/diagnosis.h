// SPDX-License-Identifier: Apache-2.0
// What simdjson leaves untold of a text that it refuses: the place inside a token, and words for
// what stands there. Pure functions, for the way to an error only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace caisson::json {

// The offset of the first sequence that is not UTF-8; the size of a text that has none.
std::size_t FirstInvalidByte(std::string_view text);

// The first string that holds a raw control character or has no closing quote.
struct BrokenString {
  std::size_t begin;  // of its opening quote
  std::size_t end;    // of the control character, or of the text
};
std::optional<BrokenString> FindBrokenString(std::string_view text);

// The first wrong escape in a string; `text` begins with the opening quote and may go on after the
// closing one.
struct BadEscape {
  std::size_t offset;
  const char* problem;
};
std::optional<BadEscape> FindBadEscape(std::string_view text);

// The first character of `rest` in words, and what its author may have meant ("" if unknown).
std::string DescribeNext(std::string_view rest);
std::string HintFor(std::string_view rest);

}  // namespace caisson::json
