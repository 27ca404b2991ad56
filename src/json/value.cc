// SPDX-License-Identifier: Apache-2.0
#include "json/value.h"

#include <atomic>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "base/sanitizer.h"
#include "json/hash.h"

namespace caisson::json {
namespace {

constexpr std::size_t kIndexThreshold = 16;
constexpr std::size_t kNotFound = std::numeric_limits<std::size_t>::max();

// Makes `pointer` the only owner of its target. use_count() is a relaxed load: what other threads
// read before they let go must be ordered before our writes.
template <typename T>
T& Unshare(std::shared_ptr<T>& pointer) {
  if (pointer.use_count() != 1) {
    pointer = std::make_shared<T>(*pointer);
  } else if constexpr (kThreadSanitizer) {
    // TSan knows no fences; the decrement of the copy's count acquires.
    auto probe = pointer;  // NOLINT(performance-unnecessary-copy-initialization)
  } else {
#if !defined(__SANITIZE_THREAD__)
    std::atomic_thread_fence(std::memory_order_acquire);
#endif
  }
  return *pointer;
}

}  // namespace

Value::Value(std::uint64_t value) {
  if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    data_ = static_cast<std::int64_t>(value);
  } else {
    data_ = std::make_shared<BigInt>(BigInt{std::to_string(value)});
  }
}

Value::Value(std::string value) : data_(std::make_shared<std::string>(std::move(value))) {}
Value::Value(Array value) : data_(std::make_shared<Array>(std::move(value))) {}
Value::Value(Object value) : data_(std::make_shared<Object>(std::move(value))) {}

Value Value::Integer(std::string_view digits) {
  std::int64_t number = 0;
  const char* begin = digits.data();
  if (std::from_chars(begin, begin + digits.size(), number).ec == std::errc{}) return number;
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  Value value;
  value.data_ = std::make_shared<BigInt>(BigInt{(negative ? "-" : "") + std::string(digits)});
  return value;
}

Array& Value::mutable_array() { return Unshare(std::get<std::shared_ptr<Array>>(data_)); }
Object& Value::mutable_object() { return Unshare(std::get<std::shared_ptr<Object>>(data_)); }

double Value::ToDouble() const {
  if (is_int()) return static_cast<double>(as_int());
  if (is_double()) return as_double();
  const std::string& digits = as_bigint();
  double number = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (result.ec == std::errc{}) return number;
  const double infinity = std::numeric_limits<double>::infinity();
  return digits.starts_with('-') ? -infinity : infinity;
}

const Value* Value::Find(std::string_view key) const {
  return is_object() ? as_object().Find(key) : nullptr;
}

bool Value::operator==(const Value& other) const {
  if (kind() != other.kind()) return false;
  switch (kind()) {
    case Kind::kNull:
      return true;
    case Kind::kBool:
      return as_bool() == other.as_bool();
    case Kind::kInt:
      return as_int() == other.as_int();
    case Kind::kBigInt:
      return as_bigint() == other.as_bigint();
    case Kind::kDouble:
      return std::bit_cast<std::uint64_t>(as_double()) ==
             std::bit_cast<std::uint64_t>(other.as_double());
    case Kind::kString:
      return as_string() == other.as_string();
    case Kind::kArray:
      return &as_array() == &other.as_array() || as_array() == other.as_array();
    case Kind::kObject:
      return &as_object() == &other.as_object() || as_object() == other.as_object();
  }
  return false;
}

Object::Object(std::initializer_list<Member> members) {
  members_.reserve(members.size());
  for (const Member& member : members) Set(member.first, member.second);
}

std::size_t Object::IndexOf(std::string_view key) const {
  if (index_.empty()) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].first == key) return i;
    }
    return kNotFound;
  }
  const std::size_t mask = index_.size() - 1;
  for (std::size_t slot = HashKey(key) & mask; index_[slot] != 0; slot = (slot + 1) & mask) {
    if (members_[index_[slot] - 1].first == key) return index_[slot] - 1;
  }
  return kNotFound;
}

const Value* Object::Find(std::string_view key) const {
  const std::size_t position = IndexOf(key);
  return position == kNotFound ? nullptr : &members_[position].second;
}

Value* Object::FindMutable(std::string_view key) {
  const std::size_t position = IndexOf(key);
  return position == kNotFound ? nullptr : &members_[position].second;
}

Value& Object::Set(std::string&& key, Value value) {
  const std::size_t position = IndexOf(key);
  if (position == kNotFound) return Append(std::move(key), std::move(value));
  return members_[position].second = std::move(value);
}

Value& Object::operator[](std::string_view key) {
  const std::size_t position = IndexOf(key);
  return position == kNotFound ? Append(std::string(key), Value()) : members_[position].second;
}

bool Object::Erase(std::string_view key) {
  const std::size_t position = IndexOf(key);
  if (position == kNotFound) return false;
  members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(position));
  Reindex();
  return true;
}

bool Object::operator==(const Object& other) const {
  if (size() != other.size()) return false;
  for (const auto& [key, value] : members_) {
    const Value* twin = other.Find(key);
    if (twin == nullptr || !(value == *twin)) return false;
  }
  return true;
}

Value& Object::Append(std::string&& key, Value value) {
  members_.emplace_back(std::move(key), std::move(value));
  if (members_.size() <= kIndexThreshold) return members_.back().second;
  if (members_.size() * 2 > index_.size()) {
    Reindex();
  } else {
    Enter(members_.size() - 1);
  }
  return members_.back().second;
}

void Object::Enter(std::size_t position) {
  const std::size_t mask = index_.size() - 1;
  std::size_t slot = HashKey(members_[position].first) & mask;
  while (index_[slot] != 0) slot = (slot + 1) & mask;
  index_[slot] = static_cast<std::uint32_t>(position + 1);
}

void Object::Reindex() {
  if (members_.size() <= kIndexThreshold) {
    index_.clear();
    return;
  }
  index_.assign(std::bit_ceil(members_.size() * 4), 0);
  for (std::size_t i = 0; i < members_.size(); ++i) Enter(i);
}

}  // namespace caisson::json
