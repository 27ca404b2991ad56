// SPDX-License-Identifier: Apache-2.0
#include "python/source_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "python/unicode.h"

namespace caisson::python {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

enum class Encoding { kUtf8, kAscii, kLatin1 };

SyntaxError Error(std::string message, SourceSpan span = {}) {
  return {SyntaxError::Type::kSyntax, std::move(message), span};
}

std::string_view TakeLine(std::string_view& text) {
  const std::size_t end = text.find_first_of("\r\n");
  const std::string_view line = text.substr(0, end);
  std::size_t skip = std::min(end, text.size());
  if (text.substr(skip).starts_with("\r\n")) ++skip;
  text.remove_prefix(std::min(skip + 1, text.size()));
  return line;
}

bool IsCookieCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

// PEP 263: a comment alone on its line, with "coding" and ':' or '='.
std::string_view CookieIn(std::string_view line) {
  const std::size_t start = line.find_first_not_of(" \t\f");
  if (start == std::string_view::npos || line[start] != '#') return {};
  for (std::size_t at = line.find("coding", start); at != std::string_view::npos;
       at = line.find("coding", at + 1)) {
    std::size_t i = at + 6;
    if (i >= line.size() || (line[i] != ':' && line[i] != '=')) continue;
    do {
      ++i;
    } while (i < line.size() && (line[i] == ' ' || line[i] == '\t'));
    const std::size_t begin = i;
    while (i < line.size() && IsCookieCharacter(line[i])) ++i;
    if (i > begin) return line.substr(begin, i - begin);
  }
  return {};
}

bool IsBlankOrComment(std::string_view line) {
  const std::size_t start = line.find_first_not_of(" \t\f");
  return start == std::string_view::npos || line[start] == '#';
}

std::string_view FindCookie(std::string_view source) {
  const std::string_view first = TakeLine(source);
  if (const std::string_view cookie = CookieIn(first); !cookie.empty()) return cookie;
  return IsBlankOrComment(first) ? CookieIn(TakeLine(source)) : std::string_view();
}

// Letters folded and '_' as '-', as encoding names are compared.
std::string NormalizeName(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (c == '_') c = '-';
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return out;
}

bool IsAny(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The two families of names that PEP 263 readers fold before anything else.
std::string FoldName(std::string_view cookie) {
  const std::string name = NormalizeName(cookie.substr(0, 12));
  if (name == "utf-8" || name.starts_with("utf-8-")) return "utf-8";
  for (const std::string_view latin : {"latin-1", "iso-8859-1", "iso-latin-1"}) {
    if (name == latin || name.starts_with(std::string(latin) + "-")) return "iso-8859-1";
  }
  return std::string(cookie);
}

std::optional<Encoding> FindEncoding(std::string_view folded) {
  const std::string name = NormalizeName(folded);
  if (IsAny(name, {"utf-8", "utf8", "u8", "utf", "utf8-ucs2", "utf8-ucs4", "cp65001"})) {
    return Encoding::kUtf8;
  }
  if (IsAny(name, {"ascii", "us-ascii", "646", "ansi-x3.4-1968", "iso646-us", "us", "cp367",
                   "ibm367", "iso-ir-6"})) {
    return Encoding::kAscii;
  }
  if (IsAny(name, {"iso-8859-1", "latin1", "latin", "l1", "iso8859-1", "iso8859", "8859", "cp819",
                   "ibm819", "iso-ir-100"})) {
    return Encoding::kLatin1;
  }
  return std::nullopt;
}

// Encodings that Python has and this reader has not.
bool IsForeign(std::string_view folded) {
  const std::string name = NormalizeName(folded);
  for (const std::string_view family :
       {"cp", "iso", "windows", "koi", "mac", "big5", "gb", "euc", "shift", "sjis", "utf-16",
        "utf-32", "utf-7", "hz", "johab", "tis", "ptcp"}) {
    if (name.starts_with(family)) return true;
  }
  return false;
}

// CPython's words for the first byte that is not UTF-8.
std::string DescribeInvalidUtf8(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  const bool starts = byte >= 0xC2 && byte <= 0xF4;
  const std::size_t wanted = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
  std::size_t valid = 1;
  while (starts && valid < wanted && at + valid < text.size()) {
    std::string probe(text.substr(at, valid + 1));
    // Completed with the middle of the range, a valid prefix becomes valid.
    while (probe.size() < wanted) probe.push_back('\x90');
    if (FindInvalidUtf8(probe) != std::string_view::npos) break;
    ++valid;
  }
  const char* reason = !starts                     ? "invalid start byte"
                       : at + valid >= text.size() ? "unexpected end of data"
                                                   : "invalid continuation byte";
  if (valid == 1) {
    return fmt::format(
        "(unicode error) 'utf-8' codec can't decode byte 0x{:02x} in position {}: {}", byte, at,
        reason);
  }
  return fmt::format("(unicode error) 'utf-8' codec can't decode bytes in position {}-{}: {}", at,
                     at + valid - 1, reason);
}

bool BelongsToWord(char c) {
  return static_cast<unsigned char>(c) >= 0x80 || c == '_' || (c >= '0' && c <= '9') ||
         ((c | 32) >= 'a' && (c | 32) <= 'z');
}

// CPython decodes word by word and counts from the word's start.
SyntaxError NotUtf8(std::string_view text, std::size_t at) {
  std::size_t begin = at;
  std::size_t end = at;
  while (begin > 0 && BelongsToWord(text[begin - 1])) --begin;
  while (end < text.size() && BelongsToWord(text[end])) ++end;
  std::uint32_t line = 1;
  std::size_t line_start = 0;
  for (std::size_t i = 0; i < at; ++i) {
    const bool ends = text[i] == '\n' || (text[i] == '\r' && text[i + 1] != '\n');
    if (!ends) continue;
    ++line;
    line_start = i + 1;
  }
  const auto column = static_cast<std::uint32_t>(end - 1 - line_start);
  return Error(DescribeInvalidUtf8(text.substr(begin, end - begin), at - begin),
               {line, column, line, column});
}

std::expected<void, SyntaxError> Decode(std::string_view source, Encoding encoding,
                                        std::string& out) {
  if (encoding == Encoding::kLatin1) {
    out.reserve(source.size());
    for (const char c : source) AppendUtf8(out, static_cast<unsigned char>(c));
    return {};
  }
  if (encoding == Encoding::kAscii) {
    const auto* bad = std::find_if(source.begin(), source.end(),
                                   [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
    if (bad != source.end()) {
      return std::unexpected(
          Error(fmt::format("'ascii' codec can't decode byte 0x{:02x} in position {}: "
                            "ordinal not in range(128)",
                            static_cast<unsigned char>(*bad), bad - source.begin())));
    }
  } else if (const std::size_t at = FindInvalidUtf8(source); at != std::string_view::npos) {
    return std::unexpected(NotUtf8(source, at));
  }
  out.assign(source);
  return {};
}

std::expected<Encoding, SyntaxError> ChooseEncoding(std::string_view& source) {
  const bool marked = source.starts_with(kByteOrderMark);
  if (marked) source.remove_prefix(kByteOrderMark.size());
  const std::string_view cookie = FindCookie(source);
  if (cookie.empty()) return Encoding::kUtf8;
  const std::string name = FoldName(cookie);
  if (marked && name != "utf-8") {
    return std::unexpected(Error(fmt::format("encoding problem: {} with BOM", name)));
  }
  const auto encoding = FindEncoding(name);
  if (!encoding && IsForeign(name)) {
    return std::unexpected(
        Error(fmt::format("the encoding {} is not supported: save the file as UTF-8", name)));
  }
  if (!encoding) return std::unexpected(Error(fmt::format("unknown encoding: {}", name)));
  return *encoding;
}

std::string UnifyLineEnds(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  if (text.find('\r') == std::string_view::npos) {
    out = text;
  } else {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool lone_or_first = text[i] == '\r';
      if (lone_or_first && i + 1 < text.size() && text[i + 1] == '\n') continue;
      out.push_back(lone_or_first ? '\n' : text[i]);
    }
  }
  if (!out.empty() && out.back() != '\n') out.push_back('\n');
  out.push_back('\0');
  return out;
}

}  // namespace

std::expected<std::string, SyntaxError> ReadSource(std::string_view source,
                                                   const ParseOptions& options,
                                                   std::string& decoded) {
  if (source.size() > options.max_bytes) {
    return std::unexpected(SyntaxError{SyntaxError::Type::kTooLarge,
                                       fmt::format("the source has {} bytes; at most {} are parsed",
                                                   source.size(), options.max_bytes),
                                       {}});
  }
  if (source.find('\0') != std::string_view::npos) {
    return std::unexpected(Error("source code string cannot contain null bytes"));
  }
  Encoding encoding = Encoding::kUtf8;
  if (!options.is_text) {
    const auto chosen = ChooseEncoding(source);
    if (!chosen) return std::unexpected(chosen.error());
    encoding = *chosen;
  }
  if (auto result = Decode(source, encoding, decoded); !result) {
    return std::unexpected(std::move(result.error()));
  }
  return UnifyLineEnds(decoded);
}

}  // namespace caisson::python
