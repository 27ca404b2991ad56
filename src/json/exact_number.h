// SPDX-License-Identifier: Apache-2.0
// Numbers as decimals of any size, so that comparisons and divisions are exact: 0.3 is a multiple
// of 0.1, and integers beyond doubles keep every digit. A double stands for the shortest decimal
// that reads back as it. Pure functions.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "json/value.h"

namespace caisson::json {

// sign * digits * 10^exponent; zero is no digits, not negative, exponent 0. Neither the first nor
// the last digit is 0, so that equal numbers have equal members.
struct ExactNumber {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;

  // `number` must be a finite number.
  static ExactNumber Of(const Value& number);
  bool IsZero() const { return digits.empty(); }
  bool IsWhole() const { return exponent >= 0; }
  // Whether this is a whole number times `divisor`, which must not be zero.
  bool IsMultipleOf(const ExactNumber& divisor) const;
  bool operator==(const ExactNumber&) const = default;
  std::strong_ordering operator<=>(const ExactNumber& other) const;
};

}  // namespace caisson::json
