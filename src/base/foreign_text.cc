// SPDX-License-Identifier: Apache-2.0
#include "base/foreign_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace caisson {
namespace {

bool IsWithin(std::uint32_t c, std::uint32_t first, std::uint32_t last) {
  return c >= first && c <= last;
}

// The longest beginning of `text` of at most `max_bytes` that ends between characters.
std::string_view Beginning(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes;
  while (end > 0 && max_bytes - end < 3 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  return text.substr(0, end);
}

// `line_end`: what stands for the end of a line; `tab`: what stands for a tab.
std::string Show(std::string_view text, std::string_view line_end, std::string_view tab,
                 std::size_t max_bytes) {
  const std::string_view shown = Beginning(text, max_bytes);
  std::string out;
  out.reserve(shown.size() + 16);
  for (std::size_t at = 0; at < shown.size();) {
    const std::string_view rest = shown.substr(at);
    const std::size_t length = CharacterLength(rest);
    if (length == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(rest[0]));
    } else if (rest.starts_with('\n')) {
      out += line_end;
    } else if (rest.starts_with('\t')) {
      out += tab;
    } else if (const std::uint32_t c = CodePoint(rest.substr(0, length)); IsUnsafeToShow(c)) {
      out += EscapeOf(c);
    } else {
      out += rest.substr(0, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
  if (shown.size() < text.size()) {
    out += fmt::format(" [... {} more bytes]", text.size() - shown.size());
  }
  return out;
}

void AppendJsonEscape(std::string& out, std::uint32_t c) {
  if (c < 0x10000) {
    out += fmt::format("\\u{:04x}", c);
  } else {
    out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((c - 0x10000) >> 10),
                       0xDC00 + ((c - 0x10000) & 0x3FF));
  }
}

}  // namespace

bool IsUnsafeToShow(std::uint32_t c) {
  if (c < 0x7F) return c < 0x20;
  if (c < 0xA0 || c == 0xAD || c == 0x61C || c == 0x180E) return true;
  return c == 0x200B || IsWithin(c, 0x200E, 0x200F) || IsWithin(c, 0x2028, 0x202E) ||
         IsWithin(c, 0x2060, 0x206F) || c == 0xFEFF || IsWithin(c, 0xFFF9, 0xFFFB) ||
         IsWithin(c, 0xE0000, 0xE007F);
}

std::string EscapeOf(std::uint32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  if (c < 0x80) return fmt::format("\\x{:02x}", c);
  return c < 0x10000 ? fmt::format("\\u{:04x}", c) : fmt::format("\\U{:08x}", c);
}

std::string ShowForeign(std::string_view text, std::string_view mark, std::size_t max_bytes) {
  return Show(text, "\n" + std::string(mark), "\t", max_bytes);
}

std::string ShowForeignLine(std::string_view text, std::size_t max_bytes) {
  return Show(text, "\\n", "\\t", max_bytes);
}

bool IsSafeJson(std::string_view json) {
  // All that is unsafe lies beyond printable ASCII; text that holds such a byte is looked at
  // closely.
  unsigned char all = 0;
  for (const char c : json) all |= static_cast<unsigned char>(c);
  return all < 0x80 && json.find('\x7f') == std::string_view::npos;
}

std::string SafeJson(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  std::size_t plain = 0;  // where what is not in `out` yet begins
  for (std::size_t at = 0; at < json.size();) {
    // JSON text has no controls below 0x20 within strings, and its own line ends stay.
    if (static_cast<unsigned char>(json[at]) < 0x7F) {
      ++at;
      continue;
    }
    const std::size_t length = CharacterLength(json.substr(at));
    if (length != 0) {
      const std::uint32_t c = CodePoint(json.substr(at, length));
      if (IsUnsafeToShow(c)) {
        out += json.substr(plain, at - plain);
        AppendJsonEscape(out, c);
        plain = at + length;
      }
    }
    at += std::max<std::size_t>(length, 1);
  }
  return out += json.substr(plain);
}

}  // namespace caisson
