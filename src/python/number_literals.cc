// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "python/literals.h"

namespace caisson::python {
namespace {

constexpr std::uint64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

std::string WithoutUnderscores(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c != '_') out.push_back(c);
  }
  return out;
}

void SetHex(std::string_view hex, Arena& arena, Constant& out) {
  hex.remove_prefix(std::min(hex.find_first_not_of('0'), hex.size()));
  std::uint64_t value = 0;
  if (hex.size() <= 16) {
    std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
    if (value <= kMaxInt64) {
      out.constant = ConstantKind::kInt;
      out.integer = static_cast<std::int64_t>(value);
      return;
    }
  }
  out.constant = ConstantKind::kBigInt;
  out.text = arena.Copy(hex);
}

// `digits` in base 2 or 8: `bits` each.
std::string ToHex(std::string_view digits, int bits) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string reversed;
  unsigned pending = 0;
  int count = 0;
  for (std::size_t i = digits.size(); i-- > 0;) {
    pending |= static_cast<unsigned>(digits[i] - '0') << count;
    count += bits;
    for (; count >= 4; count -= 4, pending >>= 4) reversed.push_back(kHex[pending & 15]);
  }
  if (count > 0) reversed.push_back(kHex[pending & 15]);
  return {reversed.rbegin(), reversed.rend()};
}

// At most kMaxDecimalDigits digits, so that the square of their number is bearable.
std::string DecimalToHex(std::string_view digits) {
  constexpr std::size_t kChunk = 9;
  std::vector<std::uint32_t> limbs;  // least significant first
  for (std::size_t i = 0; i < digits.size(); i += kChunk) {
    const std::string_view chunk = digits.substr(i, kChunk);
    std::uint32_t carry = 0;
    std::from_chars(chunk.data(), chunk.data() + chunk.size(), carry);
    std::uint64_t scale = 1;
    for (std::size_t j = 0; j < chunk.size(); ++j) scale *= 10;
    for (std::uint32_t& limb : limbs) {
      const std::uint64_t value = limb * scale + carry;
      limb = static_cast<std::uint32_t>(value);
      carry = static_cast<std::uint32_t>(value >> 32);
    }
    if (carry != 0) limbs.push_back(carry);
  }
  std::string out;
  for (std::size_t i = limbs.size(); i-- > 0;) {
    char digits_of_limb[8];
    const auto end = std::to_chars(digits_of_limb, digits_of_limb + 8, limbs[i], 16).ptr;
    out.append(8 - (end - digits_of_limb), '0').append(digits_of_limb, end);
  }
  return out;
}

bool SetDecimal(std::string_view digits, Arena& arena, Constant& out, std::size_t& count) {
  std::uint64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec == std::errc() && value <= kMaxInt64) {
    out.constant = ConstantKind::kInt;
    out.integer = static_cast<std::int64_t>(value);
    return true;
  }
  count = digits.size();
  if (count > kMaxDecimalDigits) return false;
  SetHex(DecimalToHex(digits), arena, out);
  return true;
}

// The power of ten of the first significant digit, only meaningful far outside double's range.
long DecimalMagnitude(std::string_view text) {
  const std::size_t e = text.find_first_of("eE");
  const std::string_view mantissa = text.substr(0, e);
  long exponent = 0;
  if (e != std::string_view::npos) {
    std::string_view digits = text.substr(e + 1);
    const bool negative = digits.front() == '-';
    if (negative || digits.front() == '+') digits.remove_prefix(1);
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (result.ec != std::errc()) exponent = std::numeric_limits<int>::max();
    if (negative) exponent = -exponent;
  }
  const std::size_t first = mantissa.find_first_not_of("0.");
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  return exponent + static_cast<long>(point) - static_cast<long>(first);
}

double ToDouble(std::string_view text) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc::result_out_of_range) {
    return DecimalMagnitude(text) > 0 ? std::numeric_limits<double>::infinity() : 0.0;
  }
  return value;
}

void SetFloat(std::string_view text, Constant& out) {
  const bool imaginary = (text.back() | 32) == 'j';
  if (imaginary) text.remove_suffix(1);
  out.constant = imaginary ? ConstantKind::kComplex : ConstantKind::kFloat;
  out.number = ToDouble(text);
}

}  // namespace

std::string TooManyDigits(std::size_t digits) {
  return fmt::format(
      "Exceeds the limit ({} digits) for integer string conversion: value has {} digits; use "
      "sys.set_int_max_str_digits() to increase the limit - Consider hexadecimal for huge integer "
      "literals to avoid decimal conversion limits.",
      kMaxDecimalDigits, digits);
}

bool DecodeNumber(std::string_view spelling, Arena& arena, Constant& out, std::size_t& digits) {
  std::string plain;
  if (spelling.find('_') != std::string_view::npos) {
    plain = WithoutUnderscores(spelling);
    spelling = plain;
  }
  const int base = spelling.size() > 2 && spelling[0] == '0' ? spelling[1] | 32 : 0;
  if (base == 'x') {
    std::string hex(spelling.substr(2));
    for (char& c : hex) c = static_cast<char>(c | 32);
    SetHex(hex, arena, out);
    return true;
  }
  if (base == 'o' || base == 'b') {
    SetHex(ToHex(spelling.substr(2), base == 'o' ? 3 : 1), arena, out);
    return true;
  }
  if (spelling.find_first_of(".eEjJ") != std::string_view::npos) {
    SetFloat(spelling, out);
    return true;
  }
  return SetDecimal(spelling, arena, out, digits);
}

}  // namespace caisson::python
