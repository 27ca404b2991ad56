// SPDX-License-Identifier: Apache-2.0
// Reads the members of a JSON object of which each must be there; remembers the first that is
// missing or not of its kind.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "json/value.h"

namespace caisson::machine {

class Fields {
 public:
  explicit Fields(const json::Value& value) : value_(value) {}

  std::string Text(const char* key) {
    const json::Value* found = value_.Find(key);
    if (found != nullptr && found->is_string()) return found->as_string();
    return Miss(key), std::string();
  }
  bool Bool(const char* key) {
    const json::Value* found = value_.Find(key);
    if (found != nullptr && found->is_bool()) return found->as_bool();
    return Miss(key), false;
  }
  // 0 and up.
  std::uint64_t Number(const char* key,
                       std::uint64_t most = std::numeric_limits<std::int64_t>::max()) {
    const json::Value* found = value_.Find(key);
    if (found != nullptr && found->is_int() && found->as_int() >= 0 &&
        static_cast<std::uint64_t>(found->as_int()) <= most) {
      return static_cast<std::uint64_t>(found->as_int());
    }
    return Miss(key), 0;
  }
  double Real(const char* key) {
    const json::Value* found = value_.Find(key);
    if (found != nullptr && found->is_number()) return found->ToDouble();
    return Miss(key), 0;
  }
  const json::Value& Any(const char* key) {
    static const json::Value kNull;
    const json::Value* found = value_.Find(key);
    if (found != nullptr) return *found;
    return Miss(key), kNull;
  }
  const std::string& missed() const { return missed_; }
  // A member of another name than the `count` that were asked for.
  void Expect(std::size_t count) {
    if (missed_.empty() && (!value_.is_object() || value_.as_object().size() != count)) {
      missed_ = "list of members (there are others)";
    }
  }

 private:
  void Miss(const char* key) {
    if (missed_.empty()) missed_ = key;
  }
  const json::Value& value_;
  std::string missed_;
};

}  // namespace caisson::machine
