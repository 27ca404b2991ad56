// SPDX-License-Identifier: Apache-2.0
// Numbers as CPython reads and prints them: the text forms of int() and float(), and repr(float).
// No values and no errors here; python_text.h makes both of these.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace caisson::nodes {

// The value of a decimal digit of any script, -1 for other characters.
int DecimalDigit(std::uint32_t character);

// `text` as int() takes it (spaces around, a sign, underscores between digits, digits of any
// script), as canonical decimal text: "-12", "0". nullopt when it is none.
std::optional<std::string> ParseInt(std::string_view text);
// `text` as float() takes it: also "inf", "nan", "infinity" in any case.
std::optional<double> ParseFloat(std::string_view text);
// repr(value); "nan", "inf", "-inf" included.
std::string FloatRepr(double value);
// The integer part of a finite value, exactly, as decimal text.
std::string TruncatedText(double value);

}  // namespace caisson::nodes
