// SPDX-License-Identifier: Apache-2.0
#include "nodes/python_number.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "errors/nodes.h"
#include "json/writer.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr std::size_t kMaxDigits = 4300;

// The text without spaces around it, digits of other scripts as ASCII, underscores between digits
// dropped; nullopt when an underscore stands elsewhere or another character is not ASCII.
std::optional<std::string> Normalise(std::string_view text) {
  text = Strip(text);
  std::string plain;
  plain.reserve(text.size());
  bool after_digit = false;
  bool after_underscore = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t character = NextCharacter(text, at);
    const int digit = DecimalDigit(character);
    if (after_underscore && digit < 0) return std::nullopt;
    after_underscore = false;
    if (character == '_') {
      if (!after_digit) return std::nullopt;
      after_underscore = true;
    } else if (digit >= 0) {
      plain += static_cast<char>('0' + digit);
    } else if (character < 0x80) {
      plain += static_cast<char>(character);
    } else {
      return std::nullopt;
    }
    after_digit = digit >= 0;
  }
  if (after_underscore) return std::nullopt;
  return plain;
}

bool EqualsIgnoringCase(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] + 32) : text[i];
    if (c != lower[i]) return false;
  }
  return true;
}

std::optional<double> ParseSpecial(std::string_view text) {
  if (EqualsIgnoringCase(text, "inf") || EqualsIgnoringCase(text, "infinity")) {
    return std::numeric_limits<double>::infinity();
  }
  if (EqualsIgnoringCase(text, "nan")) return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

// digits, an optional point, an optional exponent; at least one digit before the exponent.
bool IsFloatText(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t begin = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at - begin;
  };
  std::size_t count = digits();
  if (at < text.size() && text[at] == '.') {
    ++at;
    count += digits();
  }
  if (count == 0) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

}  // namespace

std::optional<std::string> ParseInt(std::string_view text) {
  const auto plain = Normalise(text);
  if (!plain) return std::nullopt;
  std::string_view digits = *plain;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) return "0";
  return (negative ? "-" : "") + std::string(digits);
}

std::optional<double> ParseFloat(std::string_view text) {
  const auto plain = Normalise(text);
  if (!plain) return std::nullopt;
  std::string_view body = *plain;
  const bool negative = body.starts_with('-');
  if (negative || body.starts_with('+')) body.remove_prefix(1);
  std::optional<double> number = ParseSpecial(body);
  if (!number) {
    if (!IsFloatText(body)) return std::nullopt;
    // strtod, since from_chars does not tell overflow from underflow; the text is checked above,
    // and the C locale is never changed.
    number = std::strtod(std::string(body).c_str(), nullptr);
  }
  return negative ? -*number : *number;
}

std::string FloatRepr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return json::FormatDouble(value);
}

std::string TruncatedText(double value) {
  char text[400];
  std::snprintf(text, sizeof text, "%.0f", std::trunc(value));
  return std::string_view(text) == "-0" ? "0" : text;
}

namespace {

Result<json::Value> IntFromText(const std::string& text) {
  const auto digits = ParseInt(text);
  if (!digits) return NodeFailed("invalid literal for int() with base 10: " + PyReprText(text));
  const std::size_t count = digits->size() - (digits->starts_with('-') ? 1 : 0);
  if (count > kMaxDigits) {
    return NodeFailed("Exceeds the limit (4300 digits) for integer string conversion: value has " +
                      std::to_string(count) + " digits");
  }
  return json::Value::Integer(*digits);
}

}  // namespace

Result<json::Value> PyInt(const json::Value& value) {
  if (value.is_integer()) return value;
  if (value.is_bool()) return json::Value(value.as_bool() ? 1 : 0);
  if (value.is_string()) return IntFromText(value.as_string());
  if (value.is_double()) {
    const double number = value.as_double();
    if (std::isnan(number)) return NodeFailed("cannot convert float NaN to integer");
    if (std::isinf(number)) return NodeFailed("cannot convert float infinity to integer");
    return json::Value::Integer(TruncatedText(number));
  }
  return NodeFailed("int() argument must be a string, a bytes-like object or a real number, not '" +
                    std::string(PyType(value)) + "'");
}

Result<double> PyFloat(const json::Value& value) {
  if (value.is_bool()) return value.as_bool() ? 1.0 : 0.0;
  if (value.is_number()) {
    const double number = value.ToDouble();
    if (value.is_integer() && std::isinf(number)) {
      return NodeFailed("int too large to convert to float");
    }
    return number;
  }
  if (value.is_string()) {
    if (const auto number = ParseFloat(value.as_string())) return *number;
    return NodeFailed("could not convert string to float: " + PyReprText(value.as_string()));
  }
  return NodeFailed("float() argument must be a string or a real number, not '" +
                    std::string(PyType(value)) + "'");
}

}  // namespace caisson::nodes
