// SPDX-License-Identifier: Apache-2.0
#include "nodes/html_entities.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

// Sorted by name; a name ends with ';' unless it is also recognised without one.
struct HtmlEntity {
  std::string_view name;
  std::uint32_t first;
  std::uint32_t second;  // 0: none
};

#include "nodes/html_entities.inc"

constexpr std::size_t kLongestName = 32;  // in characters, what follows is not looked at

// What the standard makes of the numbers 0x80 to 0x9f, which once were windows-1252.
constexpr std::uint16_t kWindows1252[32] = {
    0x20ac, 0x81,   0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021, 0x2c6,  0x2030, 0x160,
    0x2039, 0x152,  0x8d,   0x17d,  0x8f,   0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0x9d,   0x17e,  0x178};

bool IsDropped(std::uint32_t code) {
  return (code >= 0x1 && code <= 0x8) || code == 0xb || (code >= 0xe && code <= 0x1f) ||
         (code >= 0x7f && code <= 0x9f) || (code >= 0xfdd0 && code <= 0xfdef) ||
         (code & 0xfffe) == 0xfffe;
}

void AppendNumeric(std::string& out, std::uint32_t code) {
  constexpr std::uint32_t kReplacement = 0xfffd;
  if (code == 0) return AppendCharacter(out, kReplacement);
  if (code >= 0x80 && code <= 0x9f) return AppendCharacter(out, kWindows1252[code - 0x80]);
  if ((code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff) {
    return AppendCharacter(out, kReplacement);
  }
  if (!IsDropped(code)) AppendCharacter(out, code);
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Reads "#123;" or "#x7b;" at the start of `rest`; returns its length, 0 when there is none.
std::size_t TakeNumeric(std::string& out, std::string_view rest) {
  const bool hex = rest.size() > 1 && (rest[1] == 'x' || rest[1] == 'X');
  const std::size_t begin = hex ? 2 : 1;
  const int base = hex ? 16 : 10;
  std::uint32_t code = 0;
  std::size_t at = begin;
  for (; at < rest.size(); ++at) {
    const int digit = HexDigit(rest[at]);
    if (digit < 0 || digit >= base) break;
    code = std::min<std::uint32_t>(code * base + digit, 0x110000);
  }
  if (at == begin) return 0;
  AppendNumeric(out, code);
  return at < rest.size() && rest[at] == ';' ? at + 1 : at;
}

const HtmlEntity* FindEntity(std::string_view name) {
  const auto* found = std::ranges::lower_bound(kHtmlEntities, name, {}, &HtmlEntity::name);
  return found != std::end(kHtmlEntities) && found->name == name ? found : nullptr;
}

// The longest text after '&' that can be a name, its ';' included.
std::string_view NameAt(std::string_view rest) {
  std::size_t end = 0;
  for (std::size_t count = 0; end < rest.size() && count < kLongestName; ++count) {
    if (std::string_view("\t\n\f <&#;").find(rest[end]) != std::string_view::npos) break;
    NextCharacter(rest, end);
  }
  if (end > 0 && end < rest.size() && rest[end] == ';') ++end;
  return rest.substr(0, end);
}

// Reads a named reference at the start of `rest`; returns its length, 0 when there is none.
std::size_t TakeNamed(std::string& out, std::string_view rest) {
  const std::string_view name = NameAt(rest);
  for (std::size_t length = name.size(); length > 1; --length) {
    const HtmlEntity* entity = FindEntity(name.substr(0, length));
    if (entity == nullptr) continue;
    AppendCharacter(out, entity->first);
    if (entity->second != 0) AppendCharacter(out, entity->second);
    return length;
  }
  return 0;
}

}  // namespace

std::string HtmlUnescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t ampersand = std::min(text.find('&', at), text.size());
    out += text.substr(at, ampersand - at);
    if (ampersand == text.size()) break;
    const std::string_view rest = text.substr(ampersand + 1);
    const std::size_t length =
        rest.starts_with('#') ? TakeNumeric(out, rest) : TakeNamed(out, rest);
    if (length == 0) out += '&';
    at = ampersand + 1 + length;
  }
  return out;
}

std::string HtmlEscape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#x27;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace caisson::nodes
