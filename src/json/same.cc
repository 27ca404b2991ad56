// SPDX-License-Identifier: Apache-2.0
#include "json/same.h"

#include <string>

#include "json/exact_number.h"
#include "json/hash.h"

namespace caisson::json {
namespace {

std::int64_t Cost(const Value& value) {
  if (value.is_string()) return 1 + static_cast<std::int64_t>(value.as_string().size() / 64);
  if (value.kind() == Value::Kind::kBigInt) {
    return 1 + static_cast<std::int64_t>(value.as_bigint().size() / 16);
  }
  return 1;
}

bool SameArrays(const Array& a, const Array& b, std::int64_t& steps) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!Same(a[i], b[i], steps)) return false;
  }
  return true;
}

bool SameObjects(const Object& a, const Object& b, std::int64_t& steps) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a) {
    const Value* other = b.Find(key);
    if (other == nullptr || !Same(value, *other, steps)) return false;
  }
  return true;
}

std::uint64_t Mix(std::uint64_t hash, std::uint64_t part) {
  return (hash ^ part) * 0x9e3779b97f4a7c15u + 0x7f4a7c15u;
}

std::uint64_t NumberHash(const Value& value) {
  const ExactNumber number = ExactNumber::Of(value);
  return HashKey((number.negative ? "-" : "+") + number.digits + "e" +
                 std::to_string(number.exponent));
}

}  // namespace

bool Same(const Value& a, const Value& b, std::int64_t& steps) {
  if ((steps -= Cost(a)) < 0) return false;
  if (a.is_number() && b.is_number()) {
    if (a.kind() == b.kind() && !a.is_double()) return a == b;
    return ExactNumber::Of(a) == ExactNumber::Of(b);
  }
  if (a.kind() != b.kind()) return false;
  if (a.is_array()) return SameArrays(a.as_array(), b.as_array(), steps);
  if (a.is_object()) return SameObjects(a.as_object(), b.as_object(), steps);
  return a == b;
}

std::uint64_t SameHash(const Value& value, std::int64_t& steps) {
  if ((steps -= Cost(value)) < 0) return 0;
  if (value.is_number()) return NumberHash(value);
  if (value.is_string()) return Mix(1, HashKey(value.as_string()));
  if (value.is_bool()) return Mix(2, value.as_bool() ? 1 : 0);
  std::uint64_t hash = static_cast<std::uint64_t>(value.kind());
  if (value.is_array()) {
    for (const Value& item : value.as_array()) hash = Mix(hash, SameHash(item, steps));
  } else if (value.is_object()) {
    // The order of members does not count.
    for (const auto& [key, member] : value.as_object()) {
      hash += Mix(HashKey(key), SameHash(member, steps));
    }
  }
  return hash;
}

}  // namespace caisson::json
