// SPDX-License-Identifier: Apache-2.0
#include "json/decimal.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

namespace caisson::json {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view WithoutSign(std::string_view number) {
  return number.substr(number.starts_with('-') ? 1 : 0);
}

// What JSON asks beyond what from_chars does.
bool IsStrict(std::string_view number) {
  const std::string_view digits = WithoutSign(number);
  const std::size_t point = digits.find('.');
  auto digit_at = [&](std::size_t at) { return at < digits.size() && IsDigit(digits[at]); };
  return digit_at(0) && !(digits[0] == '0' && digit_at(1)) &&
         (point == std::string_view::npos || digit_at(point + 1));
}

// Whether a number that is out of the range of doubles is so because it is large.
bool IsHuge(std::string_view number) {
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  const std::size_t mark = std::min(number.find_first_of("eE"), number.size());
  const std::string_view digits = number.substr(std::min(mark + 1, number.size()));
  std::int64_t exponent = 0;
  for (const char c : digits) {
    if (IsDigit(c)) exponent = std::min(exponent * 10 + (c - '0'), kMost);
  }
  if (digits.starts_with('-')) exponent = -exponent;
  const std::string_view mantissa = number.substr(0, mark);
  const std::size_t point = std::min(mantissa.find('.'), mark);
  const std::size_t lead = std::min(mantissa.find_first_of("123456789"), mark);
  return exponent + static_cast<std::int64_t>(point) - static_cast<std::int64_t>(lead) > 0;
}

}  // namespace

bool IsInteger(std::string_view text) {
  const std::string_view digits = WithoutSign(text);
  return !digits.empty() && std::ranges::all_of(digits, IsDigit) &&
         (digits[0] != '0' || digits.size() == 1);
}

Decimal ReadDecimal(std::string_view text, double& number) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (stop != end || !IsStrict(text)) return Decimal::kNotANumber;
  if (error != std::errc::result_out_of_range) return Decimal::kNumber;
  if (IsHuge(text)) return Decimal::kTooLarge;
  number = text.starts_with('-') ? -0.0 : 0.0;
  return Decimal::kNumber;
}

}  // namespace caisson::json
