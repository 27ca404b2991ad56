// SPDX-License-Identifier: Apache-2.0
#include "json/exact_number.h"

#include <openssl/bn.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <new>
#include <string_view>

#include "json/writer.h"

namespace caisson::json {
namespace {

struct BnFree {
  void operator()(BIGNUM* number) const { BN_free(number); }
  void operator()(BN_CTX* context) const { BN_CTX_free(context); }
};
using Bn = std::unique_ptr<BIGNUM, BnFree>;

ExactNumber FromText(std::string_view text) {
  ExactNumber number;
  number.negative = text.starts_with('-');
  if (number.negative) text.remove_prefix(1);
  const std::size_t mark = std::min(text.find_first_of("eE"), text.size());
  if (mark < text.size()) {
    std::string_view exponent = text.substr(mark + 1);
    if (exponent.starts_with('+')) exponent.remove_prefix(1);
    std::from_chars(exponent.data(), exponent.data() + exponent.size(), number.exponent);
  }
  bool after_point = false;
  for (const char c : text.substr(0, mark)) {
    if (c == '.') {
      after_point = true;
      continue;
    }
    if (after_point) --number.exponent;
    if (c != '0' || !number.digits.empty()) number.digits += c;
  }
  const std::size_t kept = number.digits.find_last_not_of('0') + 1;
  number.exponent += static_cast<std::int64_t>(number.digits.size() - kept);
  number.digits.resize(kept);
  if (number.digits.empty()) return {};
  return number;
}

Bn ToBn(const ExactNumber& number, std::int64_t exponent) {
  std::string digits = number.digits;
  digits.append(static_cast<std::size_t>(number.exponent - exponent), '0');
  BIGNUM* made = nullptr;
  if (BN_dec2bn(&made, digits.c_str()) == 0) throw std::bad_alloc();
  return Bn(made);
}

std::strong_ordering CompareMagnitudes(const ExactNumber& a, const ExactNumber& b) {
  const std::int64_t above_a = static_cast<std::int64_t>(a.digits.size()) + a.exponent;
  const std::int64_t above_b = static_cast<std::int64_t>(b.digits.size()) + b.exponent;
  if (above_a != above_b) return above_a <=> above_b;
  return a.digits.compare(b.digits) <=> 0;
}

}  // namespace

ExactNumber ExactNumber::Of(const Value& number) {
  if (number.is_int()) return FromText(std::to_string(number.as_int()));
  return FromText(number.is_double() ? FormatDouble(number.as_double()) : number.as_bigint());
}

bool ExactNumber::IsMultipleOf(const ExactNumber& divisor) const {
  if (IsZero()) return true;
  const std::int64_t least = std::min(exponent, divisor.exponent);
  const Bn mine = ToBn(*this, least);
  const Bn other = ToBn(divisor, least);
  const Bn rest(BN_new());
  const std::unique_ptr<BN_CTX, BnFree> context(BN_CTX_new());
  if (rest == nullptr || context == nullptr ||
      BN_mod(rest.get(), mine.get(), other.get(), context.get()) != 1) {
    throw std::bad_alloc();
  }
  return BN_is_zero(rest.get()) == 1;
}

std::strong_ordering ExactNumber::operator<=>(const ExactNumber& other) const {
  if (IsZero() || other.IsZero()) {
    const int mine = IsZero() ? 0 : (negative ? -1 : 1);
    const int theirs = other.IsZero() ? 0 : (other.negative ? -1 : 1);
    return mine <=> theirs;
  }
  if (negative != other.negative) return other.negative <=> negative;
  return negative ? CompareMagnitudes(other, *this) : CompareMagnitudes(*this, other);
}

}  // namespace caisson::json
