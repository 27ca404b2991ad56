// SPDX-License-Identifier: Apache-2.0
// Header fields in the order in which they came; names compare without regard to case. Not a
// parser: names and values are taken as they are, and whoever writes them to the wire checks them.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::http {

struct Field {
  std::string name;
  std::string value;
};

bool EqualsIgnoringCase(std::string_view a, std::string_view b);

class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<Field> fields) : fields_(fields) {}

  // The first field of that name, or nullptr; valid until the next change.
  const std::string* Find(std::string_view name) const;
  std::size_t Count(std::string_view name) const;
  // True when a comma-separated field of that name has `token` as a member.
  bool HasToken(std::string_view name, std::string_view token) const;

  void Add(std::string_view name, std::string_view value);
  void Set(std::string_view name, std::string_view value);  // in place of all of that name
  void Remove(std::string_view name);

  std::size_t size() const { return fields_.size(); }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  std::vector<Field> fields_;
};

// A token of RFC 9110 (a method, a field name).
bool IsToken(std::string_view text);
// Text that may stand as the value of a field: no controls but tab, no space at its ends.
bool IsFieldValue(std::string_view text);

}  // namespace caisson::http
