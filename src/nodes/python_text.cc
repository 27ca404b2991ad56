// SPDX-License-Identifier: Apache-2.0
#include "nodes/python_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "base/utf8.h"
#include "errors/nodes.h"
#include "nodes/python_number.h"

namespace caisson::nodes {
namespace {

struct CodeRange {
  std::uint32_t first;
  std::uint32_t last;
};
struct SimpleCase {
  std::uint32_t from;
  std::uint32_t to;
};
struct SpecialCase {
  std::uint32_t from;
  std::uint32_t to[3];
};

#include "nodes/unicode_tables.inc"

constexpr std::uint32_t kCapitalSigma = 0x3a3;
constexpr std::uint32_t kSmallSigma = 0x3c3;
constexpr std::uint32_t kFinalSigma = 0x3c2;

template <std::size_t N>
bool Within(const CodeRange (&table)[N], std::uint32_t character) {
  const auto* range = std::ranges::lower_bound(table, character, {}, &CodeRange::last);
  return range != std::end(table) && range->first <= character;
}

// Appends what the tables make of `character`.
template <std::size_t N, std::size_t M>
void AppendMapped(std::string& out, std::uint32_t character, const SimpleCase (&simple)[N],
                  const SpecialCase (&special)[M]) {
  const auto* one = std::ranges::lower_bound(simple, character, {}, &SimpleCase::from);
  if (one != std::end(simple) && one->from == character) return AppendCharacter(out, one->to);
  const auto* many = std::ranges::lower_bound(special, character, {}, &SpecialCase::from);
  if (many == std::end(special) || many->from != character) return AppendCharacter(out, character);
  for (const std::uint32_t part : many->to) {
    if (part != 0) AppendCharacter(out, part);
  }
}

std::size_t PreviousStart(std::string_view text, std::size_t position) {
  do {
    --position;
  } while (position > 0 && (static_cast<unsigned char>(text[position]) & 0xc0) == 0x80);
  return position;
}

// Whether the sigma whose bytes are [begin, end) ends a word: a cased letter before it, none after.
bool EndsWord(std::string_view text, std::size_t begin, std::size_t end) {
  bool cased_before = false;
  for (std::size_t at = begin; at > 0;) {
    at = PreviousStart(text, at);
    std::size_t read = at;
    const std::uint32_t character = NextCharacter(text, read);
    if (Within(kCaseIgnorable, character)) continue;
    cased_before = Within(kCased, character);
    break;
  }
  if (!cased_before) return false;
  for (std::size_t at = end; at < text.size();) {
    const std::uint32_t character = NextCharacter(text, at);
    if (!Within(kCaseIgnorable, character)) return !Within(kCased, character);
  }
  return true;
}

void AppendLower(std::string& out, std::string_view text, std::size_t begin, std::size_t end,
                 std::uint32_t character) {
  if (character == kCapitalSigma) {
    return AppendCharacter(out, EndsWord(text, begin, end) ? kFinalSigma : kSmallSigma);
  }
  AppendMapped(out, character, kLowerSimple, kLowerSpecial);
}

void AppendEscape(std::string& out, std::uint32_t character) {
  static constexpr char kHex[] = "0123456789abcdef";
  int digits = 2;
  if (character > 0xffff) {
    out += "\\U";
    digits = 8;
  } else if (character > 0xff) {
    out += "\\u";
    digits = 4;
  } else {
    out += "\\x";
  }
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4)
    out += kHex[(character >> shift) & 0xf];
}

void AppendRepr(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::uint32_t character = NextCharacter(text, at);
    if (character == static_cast<unsigned char>(quote) || character == '\\') {
      out += '\\';
      out += static_cast<char>(character);
    } else if (character == '\n') {
      out += "\\n";
    } else if (character == '\r') {
      out += "\\r";
    } else if (character == '\t') {
      out += "\\t";
    } else if (IsPrintable(character)) {
      out += text.substr(begin, at - begin);
    } else {
      AppendEscape(out, character);
    }
  }
  out += quote;
}

void AppendRepr(std::string& out, const json::Value& value);

void AppendSequence(std::string& out, const json::Array& items) {
  out += '[';
  const char* separator = "";
  for (const json::Value& item : items) {
    out += separator;
    AppendRepr(out, item);
    separator = ", ";
  }
  out += ']';
}

void AppendMapping(std::string& out, const json::Object& members) {
  out += '{';
  const char* separator = "";
  for (const auto& [key, member] : members) {
    out += separator;
    AppendRepr(out, std::string_view(key));
    out += ": ";
    AppendRepr(out, member);
    separator = ", ";
  }
  out += '}';
}

void AppendRepr(std::string& out, const json::Value& value) {
  using Kind = json::Value::Kind;
  switch (value.kind()) {
    case Kind::kNull:
      out += "None";
      break;
    case Kind::kBool:
      out += value.as_bool() ? "True" : "False";
      break;
    case Kind::kInt:
      out += std::to_string(value.as_int());
      break;
    case Kind::kBigInt:
      out += value.as_bigint();
      break;
    case Kind::kDouble:
      out += FloatRepr(value.as_double());
      break;
    case Kind::kString:
      AppendRepr(out, std::string_view(value.as_string()));
      break;
    case Kind::kArray:
      AppendSequence(out, value.as_array());
      break;
    case Kind::kObject:
      AppendMapping(out, value.as_object());
      break;
  }
}

}  // namespace

std::uint32_t NextCharacter(std::string_view text, std::size_t& position) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t lead = byte(position++);
  if (lead < 0xc0) return lead;
  const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
  std::uint32_t character = lead & (0x3fu >> more);
  for (int i = 0; i < more && position < text.size() && (byte(position) & 0xc0) == 0x80; ++i) {
    character = character << 6 | (byte(position++) & 0x3fu);
  }
  return character;
}

void AppendCharacter(std::string& text, std::uint32_t character) {
  const auto tail = [&](int shift) {
    text += static_cast<char>(0x80 | ((character >> shift) & 0x3f));
  };
  if (character < 0x80) {
    text += static_cast<char>(character);
  } else if (character < 0x800) {
    text += static_cast<char>(0xc0 | character >> 6);
    tail(0);
  } else if (character < 0x10000) {
    text += static_cast<char>(0xe0 | character >> 12);
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xf0 | character >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

std::size_t CharacterCount(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) NextCharacter(text, at);
  return count;
}

bool IsSpace(std::uint32_t character) {
  if (character < 0x80) {
    return character == ' ' || (character >= 0x09 && character <= 0x0d) ||
           (character >= 0x1c && character <= 0x1f);
  }
  return character == 0x85 || character == 0xa0 || character == 0x1680 ||
         (character >= 0x2000 && character <= 0x200a) || character == 0x2028 ||
         character == 0x2029 || character == 0x202f || character == 0x205f || character == 0x3000;
}

bool IsWordCharacter(std::uint32_t character) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(character));
  return character == '_' ||
         (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
         (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

bool IsPrintable(std::uint32_t character) {
  if (character < 0x7f) return character >= 0x20;
  return !Within(kNotPrintable, character);
}

std::string_view Strip(std::string_view text) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t next = begin;
    if (!IsSpace(NextCharacter(text, next))) break;
    begin = next;
  }
  std::size_t end = text.size();
  while (end > begin) {
    const std::size_t start = PreviousStart(text, end);
    std::size_t read = start;
    if (!IsSpace(NextCharacter(text, read))) break;
    end = start;
  }
  return text.substr(begin, end - begin);
}

int DecimalDigit(std::uint32_t character) {
  if (character < 0x80) return character >= '0' && character <= '9' ? int(character) - '0' : -1;
  const auto* zero = std::ranges::upper_bound(kDecimalZeros, character);
  if (zero == std::begin(kDecimalZeros)) return -1;
  const std::uint32_t digit = character - *(zero - 1);
  return digit < 10 ? static_cast<int>(digit) : -1;
}

bool IsDigits(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t character = NextCharacter(text, at);
    if (DecimalDigit(character) < 0 && !Within(kDigitsNotDecimal, character)) return false;
  }
  return !text.empty();
}

std::string Lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  if (IsAscii(text)) {
    for (const char c : text) out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return out;
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::uint32_t character = NextCharacter(text, at);
    AppendLower(out, text, begin, at, character);
  }
  return out;
}

std::string Upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    AppendMapped(out, NextCharacter(text, at), kUpperSimple, kUpperSpecial);
  }
  return out;
}

std::string Title(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool after_cased = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::uint32_t character = NextCharacter(text, at);
    if (after_cased) {
      AppendLower(out, text, begin, at, character);
    } else {
      AppendMapped(out, character, kTitleSimple, kTitleSpecial);
    }
    after_cased = Within(kCased, character);
  }
  return out;
}

std::string PyStr(const json::Value& value) {
  return value.is_string() ? value.as_string() : PyRepr(value);
}

std::string PyRepr(const json::Value& value) {
  std::string out;
  AppendRepr(out, value);
  return out;
}

std::string PyReprText(std::string_view text) {
  std::string out;
  AppendRepr(out, text);
  return out;
}

std::string_view PyType(const json::Value& value) {
  static constexpr std::string_view kNames[] = {"NoneType", "bool", "int",  "int",
                                                "float",    "str",  "list", "dict"};
  return kNames[static_cast<std::size_t>(value.kind())];
}

std::unexpected<Status> NodeFailed(std::string message) {
  return Fail(errors::kNodesFailed, std::move(message));
}

}  // namespace caisson::nodes
