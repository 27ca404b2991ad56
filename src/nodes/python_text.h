// SPDX-License-Identifier: Apache-2.0
// JSON values treated as CPython 3.12 treats the objects that they stand for: str(), repr(), int(),
// float(), truth, and the str methods that nodes use. Pure functions over UTF-8 text (assumed
// valid; a broken byte counts as one character). Results of str.lower and its like follow
// Unicode 15.0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/truth.h"
#include "json/value.h"

namespace caisson::nodes {

// Decodes the character that starts at `position` and moves `position` behind it.
std::uint32_t NextCharacter(std::string_view text, std::size_t& position);
void AppendCharacter(std::string& text, std::uint32_t character);
std::size_t CharacterCount(std::string_view text);

bool IsSpace(std::uint32_t character);      // str.isspace of one character, and \s of its regexes
bool IsPrintable(std::uint32_t character);  // str.isprintable
bool IsWordCharacter(std::uint32_t character);  // \w of its regexes
std::string_view Strip(std::string_view text);
// True for a non-empty text of digits in the sense of str.isdigit.
bool IsDigits(std::string_view text);

std::string Lower(std::string_view text);
std::string Upper(std::string_view text);
std::string Title(std::string_view text);

// str(value) and repr(value); objects print as dicts, arrays as lists.
std::string PyStr(const json::Value& value);
std::string PyRepr(const json::Value& value);
std::string PyReprText(std::string_view text);
// "str", "int", "dict" ...: the name of the value's type.
std::string_view PyType(const json::Value& value);

// int(value) and float(value). Fail with nodes.failed and Python's message.
Result<json::Value> PyInt(const json::Value& value);
Result<double> PyFloat(const json::Value& value);

// A failure of a node with that message.
inline constexpr std::size_t kMaxPathSegments = 500;
std::unexpected<Status> NodeFailed(std::string message);

}  // namespace caisson::nodes
