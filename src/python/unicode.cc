// SPDX-License-Identifier: Apache-2.0
#include "python/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "python/unicode_tables.h"

namespace caisson::python {
namespace {

using unicode_tables::UnicodeRange;

bool Contains(std::span<const UnicodeRange> ranges, char32_t c) {
  const auto* after = std::upper_bound(
      ranges.data(), ranges.data() + ranges.size(), static_cast<std::uint32_t>(c),
      [](std::uint32_t code, const UnicodeRange& range) { return code < range.first; });
  return after != ranges.data() && after[-1].last >= c;
}

// ---- algorithmic names -------------------------------------------------------------------------

constexpr std::string_view kHangulPrefix = "HANGUL SYLLABLE ";
constexpr std::string_view kIdeographPrefix = "CJK UNIFIED IDEOGRAPH-";
constexpr char32_t kHangulBase = 0xAC00;

constexpr std::array<std::string_view, 19> kLeads = {"G", "GG", "N", "D",  "DD", "R", "M",
                                                     "B", "BB", "S", "SS", "",   "J", "JJ",
                                                     "C", "K",  "T", "P",  "H"};
constexpr std::array<std::string_view, 21> kVowels = {"A",   "AE", "YA", "YAE", "EO", "E",  "YEO",
                                                      "YE",  "O",  "WA", "WAE", "OE", "YO", "U",
                                                      "WEO", "WE", "WI", "YU",  "EU", "YI", "I"};
constexpr std::array<std::string_view, 28> kTails = {
    "",   "G",  "GG", "GS", "N",  "NJ", "NH", "D",  "L", "LG", "LM", "LB", "LS", "LT",
    "LP", "LH", "M",  "B",  "BS", "S",  "SS", "NG", "J", "C",  "K",  "T",  "P",  "H"};

// Index of the longest of `parts` that `rest` starts with, which is then taken off; -1 when none.
int TakeLongest(std::span<const std::string_view> parts, std::string_view& rest) {
  int best = -1;
  for (int i = 0; i < static_cast<int>(parts.size()); ++i) {
    if (rest.starts_with(parts[i]) && (best < 0 || parts[i].size() > parts[best].size())) best = i;
  }
  if (best >= 0) rest.remove_prefix(parts[best].size());
  return best;
}

std::optional<char32_t> HangulByName(std::string_view rest) {
  const int lead = TakeLongest(kLeads, rest);
  const int vowel = TakeLongest(kVowels, rest);
  const int tail = TakeLongest(kTails, rest);
  if (lead < 0 || vowel < 0 || tail < 0 || !rest.empty()) return std::nullopt;
  return kHangulBase + static_cast<char32_t>((lead * 21 + vowel) * 28 + tail);
}

std::optional<char32_t> IdeographByName(std::string_view digits) {
  if (digits.size() != 4 && digits.size() != 5) return std::nullopt;
  char32_t code = 0;
  for (const char c : digits) {
    const bool decimal = c >= '0' && c <= '9';
    if (!decimal && (c < 'A' || c > 'F')) return std::nullopt;
    code = code * 16 + static_cast<char32_t>(decimal ? c - '0' : c - 'A' + 10);
  }
  if (!Contains({unicode_tables::kIdeographs, unicode_tables::kIdeographsSize}, code)) {
    return std::nullopt;
  }
  return code;
}

// ---- tabulated names ---------------------------------------------------------------------------

constexpr std::size_t kLongestName = 255;

std::string_view BlockHead(std::size_t block) {
  const std::uint8_t* entry = unicode_tables::kNames + unicode_tables::kNameBlocks[block];
  return {reinterpret_cast<const char*>(entry + 2), entry[1]};
}

std::optional<char32_t> FindInBlock(std::size_t block, std::string_view name) {
  const std::uint8_t* entry = unicode_tables::kNames + unicode_tables::kNameBlocks[block];
  const std::uint8_t* end = block + 1 < unicode_tables::kNameBlocksSize
                                ? unicode_tables::kNames + unicode_tables::kNameBlocks[block + 1]
                                : unicode_tables::kNames + unicode_tables::kNamesSize;
  std::array<char, 2 * kLongestName> current;
  while (entry < end) {
    const std::size_t shared = entry[0];
    const std::size_t rest = entry[1];
    std::memcpy(current.data() + shared, entry + 2, rest);
    entry += 2 + rest;
    if (name == std::string_view(current.data(), shared + rest)) {
      return static_cast<char32_t>(entry[0] << 16 | entry[1] << 8 | entry[2]);
    }
    entry += 3;
  }
  return std::nullopt;
}

std::optional<char32_t> FindName(std::string_view name) {
  std::size_t low = 0;
  std::size_t high = unicode_tables::kNameBlocksSize;
  while (low < high) {  // the first block whose head is beyond the name
    const std::size_t middle = (low + high) / 2;
    if (BlockHead(middle) <= name) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 ? std::nullopt : FindInBlock(low - 1, name);
}

}  // namespace

bool IsIdentifierStart(char32_t c) {
  if (c < 128) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  return Contains({unicode_tables::kIdentifierStart, unicode_tables::kIdentifierStartSize}, c);
}

bool IsIdentifierContinue(char32_t c) {
  if (c < 128) return IsIdentifierStart(c) || (c >= '0' && c <= '9');
  return Contains({unicode_tables::kIdentifierContinue, unicode_tables::kIdentifierContinueSize},
                  c);
}

bool IsPrintable(char32_t c) {
  if (c < 127) return c >= ' ';
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

std::optional<std::string> NormalizeNfkc(std::string_view text) {
  utf8proc_uint8_t* out = nullptr;
  const auto size = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
      static_cast<utf8proc_ssize_t>(text.size()), &out,
      // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): a C enum of flags
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(out, &std::free);
  if (size < 0) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(out), static_cast<std::size_t>(size));
}

std::optional<char32_t> CharacterByName(std::string_view name) {
  if (name.starts_with(kHangulPrefix)) return HangulByName(name.substr(kHangulPrefix.size()));
  if (name.starts_with(kIdeographPrefix)) {
    return IdeographByName(name.substr(kIdeographPrefix.size()));
  }
  if (name.empty() || name.size() > kLongestName) return std::nullopt;
  std::string upper(name);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  }
  return FindName(upper);
}

char32_t DecodeUtf8(std::string_view text, std::size_t& offset) {
  const auto byte = [&](std::size_t i) -> char32_t {
    return offset + i < text.size() ? static_cast<unsigned char>(text[offset + i]) : 0;
  };
  const char32_t first = byte(0);
  std::size_t size = 1;
  char32_t c = first;
  if (first >= 0xF0) {
    size = 4;
    c = (first & 7) << 18 | (byte(1) & 63) << 12 | (byte(2) & 63) << 6 | (byte(3) & 63);
  } else if (first >= 0xE0) {
    size = 3;
    c = (first & 15) << 12 | (byte(1) & 63) << 6 | (byte(2) & 63);
  } else if (first >= 0xC0) {
    size = 2;
    c = (first & 31) << 6 | (byte(1) & 63);
  }
  offset = std::min(offset + size, text.size());
  return c;
}

void AppendUtf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6), put(0x80 | (c & 63));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 63)), put(0x80 | (c & 63));
  } else {
    put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 63)), put(0x80 | (c >> 6 & 63)),
        put(0x80 | (c & 63));
  }
}

std::size_t FindInvalidUtf8(std::string_view text) {
  std::size_t i = 0;
  const auto continues = [&](std::size_t at, unsigned low, unsigned high) {
    if (at >= text.size()) return false;
    const auto c = static_cast<unsigned char>(text[at]);
    return c >= low && c <= high;
  };
  while (i < text.size()) {
    std::uint64_t chunk;
    if (i + 8 <= text.size()) {
      std::memcpy(&chunk, text.data() + i, 8);
      if ((chunk & 0x8080808080808080u) == 0) {
        i += 8;
        continue;
      }
    }
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x80) {
      ++i;
    } else if (c >= 0xC2 && c <= 0xDF && continues(i + 1, 0x80, 0xBF)) {
      i += 2;
    } else if (c >= 0xE0 && c <= 0xEF &&
               continues(i + 1, c == 0xE0 ? 0xA0 : 0x80, c == 0xED ? 0x9F : 0xBF) &&
               continues(i + 2, 0x80, 0xBF)) {
      i += 3;
    } else if (c >= 0xF0 && c <= 0xF4 &&
               continues(i + 1, c == 0xF0 ? 0x90 : 0x80, c == 0xF4 ? 0x8F : 0xBF) &&
               continues(i + 2, 0x80, 0xBF) && continues(i + 3, 0x80, 0xBF)) {
      i += 4;
    } else {
      return i;
    }
  }
  return std::string_view::npos;
}

std::size_t CountCharacters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace caisson::python
