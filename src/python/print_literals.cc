// SPDX-License-Identifier: Apache-2.0
#include "python/print_literals.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace caisson::python {
namespace {

constexpr std::array<std::string_view, 35> kKeywords = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

void AppendHex(std::string& out, char introducer, std::uint32_t value, int digits) {
  out += '\\';
  out += introducer;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out += "0123456789abcdef"[(value >> shift) & 0xF];
  }
}

void AppendUtf8(std::string& out, std::uint32_t code_point) {
  out += static_cast<char>(0xF0 | (code_point >> 18));
  out += static_cast<char>(0x80 | ((code_point >> 12) & 0x3F));
  out += static_cast<char>(0x80 | ((code_point >> 6) & 0x3F));
  out += static_cast<char>(0x80 | (code_point & 0x3F));
}

// Reads one code point (also a lone surrogate) and moves `position` past it. A byte that starts
// no sequence stands for itself.
std::uint32_t NextCodePoint(std::string_view text, std::size_t& position) {
  const auto lead = static_cast<unsigned char>(text[position++]);
  const int extra = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
  std::uint32_t value = extra == 0 ? lead : lead & (0x3F >> extra);
  for (int i = 0; i < extra && position < text.size(); ++i) {
    value = (value << 6) | (static_cast<unsigned char>(text[position++]) & 0x3F);
  }
  return value;
}

void AppendAscii(std::string& out, char c, const Escaping& escaping) {
  if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c == '\t') {
    out += "\\t";
  } else if (c < 0x20 || c == 0x7F || escaping.as_hex.find(c) != std::string_view::npos) {
    AppendHex(out, 'x', static_cast<unsigned char>(c), 2);
  } else {
    if (c == '\\' || c == escaping.quote) out += '\\';
    if (escaping.double_braces && (c == '{' || c == '}')) out += c;
    out += c;
  }
}

void AppendFloat(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "(1e309 - 1e309)";
    return;
  }
  if (std::isinf(value)) {
    out += value < 0 ? "-1e309" : "1e309";
    return;
  }
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  const std::string_view digits(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  out += digits;
  if (digits.find_first_of(".e") == std::string_view::npos) out += ".0";
}

void AppendNamePart(std::string& out, std::string_view part) {
  if (!std::binary_search(kKeywords.begin(), kKeywords.end(), part)) {
    out += part;
    return;
  }
  // The bold letters of the mathematical alphabets normalise to the plain ones.
  const char first = part.front();
  const bool upper = first >= 'A' && first <= 'Z';
  AppendUtf8(out, upper ? 0x1D400u + static_cast<std::uint32_t>(first - 'A')
                        : 0x1D41Au + static_cast<std::uint32_t>(first - 'a'));
  out += part.substr(1);
}

}  // namespace

void AppendEscapedText(std::string& out, std::string_view text, const Escaping& escaping) {
  for (std::size_t position = 0; position < text.size();) {
    const std::uint32_t c = NextCodePoint(text, position);
    if (c < 0x80) {
      AppendAscii(out, static_cast<char>(c), escaping);
    } else if (c < 0x100) {
      AppendHex(out, 'x', c, 2);
    } else if (c < 0x10000) {
      AppendHex(out, 'u', c, 4);
    } else {
      AppendHex(out, 'U', c, 8);
    }
  }
}

void AppendEscapedBytes(std::string& out, std::string_view bytes, const Escaping& escaping) {
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    if (value < 0x80) {
      AppendAscii(out, byte, escaping);
    } else {
      AppendHex(out, 'x', value, 2);
    }
  }
}

char PreferredQuote(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  return has_single && !has_double ? '"' : '\'';
}

void AppendIdentifier(std::string& out, std::string_view name) {
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
    AppendNamePart(out, name.substr(0, dot));
    out += '.';
    name.remove_prefix(dot + 1);
  }
  AppendNamePart(out, name);
}

void AppendNumber(std::string& out, const Constant& constant) {
  switch (constant.constant) {
    case ConstantKind::kInt:
      out += std::to_string(constant.integer);
      break;
    case ConstantKind::kBigInt:
      out += "0x";
      out += constant.text;
      break;
    case ConstantKind::kFloat:
      AppendFloat(out, constant.number);
      break;
    default:
      if (std::isnan(constant.number)) {
        out += "(1e309j - 1e309j)";
        return;
      }
      AppendFloat(out, constant.number);
      // 1.0j and 1j are the same value; the short form is the usual one.
      if (out.ends_with(".0")) out.resize(out.size() - 2);
      out += 'j';
      break;
  }
}

bool IsNumber(const Constant& constant) {
  return constant.constant == ConstantKind::kInt || constant.constant == ConstantKind::kBigInt ||
         constant.constant == ConstantKind::kFloat || constant.constant == ConstantKind::kComplex;
}

bool IsNegativeNumber(const Constant& constant) {
  if (constant.constant == ConstantKind::kInt) return constant.integer < 0;
  if (constant.constant == ConstantKind::kFloat || constant.constant == ConstantKind::kComplex) {
    return std::signbit(constant.number) && !std::isnan(constant.number);
  }
  return false;
}

}  // namespace caisson::python
