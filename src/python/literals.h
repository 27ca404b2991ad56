// SPDX-License-Identifier: Apache-2.0
// Values of number and string literals from their spelling. Stateless; results live in the arena
// or, where a literal needs no decoding, in the text that was passed in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "python/arena.h"
#include "python/ast.h"

namespace caisson::python {

// The most digits of a decimal integer literal (CPython's default limit).
inline constexpr std::size_t kMaxDecimalDigits = 4300;

// Fills constant, integer, number and text of `out` from a number token. False when a decimal
// integer has more than kMaxDecimalDigits digits; `digits` then says how many.
bool DecodeNumber(std::string_view spelling, Arena& arena, Constant& out, std::size_t& digits);

// A string token taken apart.
struct StringSpelling {
  bool raw = false;
  bool bytes = false;
  bool unicode = false;  // has the prefix u
  std::string_view body;
};
StringSpelling SplitString(std::string_view token);

// The messages of literals that have no value.
std::string TooManyDigits(std::size_t digits);
inline constexpr const char* kBytesNotAscii = "bytes can only contain ASCII literal characters";
inline constexpr const char* kMixedBytes = "cannot mix bytes and nonbytes literals";

// Conversions of replacement fields ("!r").
inline bool IsConversion(std::string_view name) {
  return name == "s" || name == "r" || name == "a";
}
std::string BadConversion(std::string_view name);
inline constexpr const char* kConversionPlace =
    "f-string: conversion type must come right after the exclamanation mark";  // as CPython spells

// What is wrong with an escape, as CPython words it ("(unicode error) 'unicodeescape' codec ...").
using EscapeError = std::optional<std::string>;

// `body` of a str literal to its value (WTF-8), of a bytes literal to its bytes. A `body` without
// escapes is returned as it is.
// `DecodeString` does either for a string token, raw or not.
EscapeError DecodeString(const StringSpelling& spelling, Arena& arena, std::string_view& out);
EscapeError DecodeStringBody(std::string_view body, Arena& arena, std::string_view& out);
EscapeError DecodeBytesBody(std::string_view body, Arena& arena, std::string_view& out);

}  // namespace caisson::python
