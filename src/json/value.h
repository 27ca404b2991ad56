// SPDX-License-Identifier: Apache-2.0
// A JSON value that keeps what JSON carries: integers of any size, the order of keys, and every
// finite double. Arrays, objects and strings are shared and copied on write, so that copying a
// Value is O(1); a Value is not synchronised, but copies of it may be used by different threads.
// NaN, infinities and lone surrogates are no JSON: readers refuse them, writers fail on them.
// Copying, comparing and destroying recurse: values built in code must stay below some 10,000
// levels (the reader stops at 1,000, the writer at kMaxWriteDepth).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace caisson::json {

class Value;
class Object;
using Array = std::vector<Value>;

// An integer beyond int64: canonical decimal text, `-?[1-9][0-9]*`, never within int64's range.
struct BigInt {
  std::string digits;
  bool operator==(const BigInt&) const = default;
};

class Value {
 public:
  enum class Kind : std::uint8_t { kNull, kBool, kInt, kBigInt, kDouble, kString, kArray, kObject };

  Value() = default;
  Value(std::nullptr_t) {}
  Value(bool value) : data_(value) {}
  Value(int value) : data_(static_cast<std::int64_t>(value)) {}
  Value(unsigned value) : data_(static_cast<std::int64_t>(value)) {}
  Value(std::int64_t value) : data_(value) {}
  Value(std::uint64_t value);  // a BigInt when it exceeds int64
  Value(double value) : data_(value) {}
  Value(const char* value) : Value(std::string(value)) {}
  Value(std::string_view value) : Value(std::string(value)) {}
  Value(std::string value);
  Value(Array value);
  Value(Object value);
  // From decimal text `-?[0-9]+`; becomes kInt when it fits. The text must have that form.
  static Value Integer(std::string_view digits);

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is_null() const { return kind() == Kind::kNull; }
  bool is_bool() const { return kind() == Kind::kBool; }
  bool is_int() const { return kind() == Kind::kInt; }  // fits int64
  bool is_integer() const { return kind() == Kind::kInt || kind() == Kind::kBigInt; }
  bool is_double() const { return kind() == Kind::kDouble; }
  bool is_number() const { return is_integer() || is_double(); }
  bool is_string() const { return kind() == Kind::kString; }
  bool is_array() const { return kind() == Kind::kArray; }
  bool is_object() const { return kind() == Kind::kObject; }

  // Each requires the matching kind.
  bool as_bool() const { return std::get<bool>(data_); }
  std::int64_t as_int() const { return std::get<std::int64_t>(data_); }
  double as_double() const { return std::get<double>(data_); }
  const std::string& as_bigint() const { return std::get<std::shared_ptr<BigInt>>(data_)->digits; }
  const std::string& as_string() const { return *std::get<std::shared_ptr<std::string>>(data_); }
  const Array& as_array() const { return *std::get<std::shared_ptr<Array>>(data_); }
  const Object& as_object() const;
  // Mutable access; unshares first. The reference is good until this Value is copied or assigned.
  Array& mutable_array();
  Object& mutable_object();
  // The nearest double of any number.
  double ToDouble() const;

  // Member lookup: nullptr when this is no object or has no such key.
  const Value* Find(std::string_view key) const;

  // Deep equality; 1 and 1.0 differ, and 0.0 and -0.0 (they are different JSON texts); key order
  // does not matter.
  bool operator==(const Value& other) const;

 private:
  std::variant<std::monostate, bool, std::int64_t, std::shared_ptr<BigInt>, double,
               std::shared_ptr<std::string>, std::shared_ptr<Array>, std::shared_ptr<Object>>
      data_;
};

// Keys are unique and keep their insertion order. Lookup is linear for small objects and indexed
// beyond a threshold; the index is kept by the mutators, so that const members only read.
class Object {
 public:
  using Member = std::pair<std::string, Value>;

  Object() = default;
  Object(std::initializer_list<Member> members);

  std::size_t size() const { return members_.size(); }
  bool empty() const { return members_.empty(); }
  auto begin() const { return members_.cbegin(); }
  auto end() const { return members_.cend(); }

  const Value* Find(std::string_view key) const;
  Value* FindMutable(std::string_view key);
  bool Contains(std::string_view key) const { return Find(key) != nullptr; }
  // Replaces in place (the key is then left alone), or appends.
  Value& Set(std::string_view key, Value value) { return Set(std::string(key), std::move(value)); }
  Value& Set(const char* key, Value value) { return Set(std::string(key), std::move(value)); }
  Value& Set(const std::string& key, Value value) {
    return Set(std::string(key), std::move(value));
  }
  Value& Set(std::string&& key, Value value);
  // The value of `key`, appended as null when absent.
  Value& operator[](std::string_view key);
  // Keeps the order of the others; O(size).
  bool Erase(std::string_view key);
  void Reserve(std::size_t count) { members_.reserve(count); }

  bool operator==(const Object& other) const;

 private:
  std::size_t IndexOf(std::string_view key) const;
  Value& Append(std::string&& key, Value value);
  void Enter(std::size_t position);
  void Reindex();

  std::vector<Member> members_;
  // Open-addressing table of positions + 1 (0: free), a power of two in size and at most half full;
  // empty while the object is small.
  std::vector<std::uint32_t> index_;
};

inline const Object& Value::as_object() const { return *std::get<std::shared_ptr<Object>>(data_); }

}  // namespace caisson::json
