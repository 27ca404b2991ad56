// SPDX-License-Identifier: Apache-2.0
#include "json/diagnosis.h"

#include <charconv>

#include "base/utf8.h"

namespace caisson::json {
namespace {

// The unit of an escape `\uXXXX` that `text` begins with.
std::optional<unsigned> EscapedUnit(std::string_view text) {
  if (!text.starts_with("\\u") || text.size() < 6) return std::nullopt;
  unsigned unit = 0;
  const char* end = text.data() + 6;
  const auto [stop, error] = std::from_chars(text.data() + 2, end, unit, 16);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return unit;
}

bool IsHighSurrogate(unsigned unit) { return unit >= 0xd800 && unit < 0xdc00; }
bool IsLowSurrogate(unsigned unit) { return unit >= 0xdc00 && unit < 0xe000; }

struct Escape {
  std::size_t length;
  const char* problem;  // nullptr: none
};

Escape ExamineEscape(std::string_view text) {
  if (text.size() < 2 || std::string_view(R"("\/bfnrtu)").find(text[1]) == std::string_view::npos) {
    return {1, "a backslash must be followed by one of \" \\ / b f n r t u"};
  }
  if (text[1] != 'u') return {2, nullptr};
  const std::optional<unsigned> unit = EscapedUnit(text);
  if (!unit) return {2, "\\u must be followed by four hexadecimal digits"};
  if (IsLowSurrogate(*unit)) return {6, "a low surrogate escape stands without its high one"};
  if (!IsHighSurrogate(*unit)) return {6, nullptr};
  const std::optional<unsigned> low = EscapedUnit(text.substr(6));
  if (low && IsLowSurrogate(*low)) return {12, nullptr};
  return {6, "a high surrogate escape stands without its low one"};
}

}  // namespace

std::size_t FirstInvalidByte(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = CharacterLength(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

// As in simdjson, a backslash escapes a quote outside of strings too: such a text is refused at the
// backslash.
std::optional<BrokenString> FindBrokenString(std::string_view text) {
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\' && at + 1 < text.size() && (text[at + 1] == '"' || text[at + 1] == '\\')) {
      ++at;
    } else if (c == '"') {
      inside = !inside;
      begin = at;
    } else if (inside && static_cast<unsigned char>(c) < 0x20) {
      return BrokenString{begin, at};
    }
  }
  if (!inside) return std::nullopt;
  return BrokenString{begin, text.size()};
}

std::optional<BadEscape> FindBadEscape(std::string_view text) {
  std::size_t at = 1;
  while (at < text.size() && text[at] != '"') {
    if (text[at] != '\\') {
      ++at;
      continue;
    }
    const Escape escape = ExamineEscape(text.substr(at));
    if (escape.problem != nullptr) return BadEscape{at, escape.problem};
    at += escape.length;
  }
  return std::nullopt;
}

std::string DescribeNext(std::string_view rest) {
  if (rest.empty()) return "the end of the text";
  const auto c = static_cast<unsigned char>(rest[0]);
  if (c > 0x20 && c < 0x7f) return std::string("'") + rest[0] + "'";
  if (c == ' ') return "a space";
  if (c == '\n') return "the end of the line";
  if (c >= 0x80) return "a character that is not ASCII";
  constexpr char kHex[] = "0123456789abcdef";
  return std::string("the control character 0x") + kHex[c >> 4] + kHex[c & 15];
}

std::string HintFor(std::string_view rest) {
  for (const std::string_view word : {"NaN", "Infinity", "None", "True", "False", "undefined"}) {
    if (rest.starts_with(word)) return "; " + std::string(word) + " is not JSON";
  }
  if (rest.starts_with('\'')) return "; strings stand in double quotes";
  return "";
}

}  // namespace caisson::json
