// SPDX-License-Identifier: Apache-2.0
// Builds objects of the guest's interpreter in its heap from JSON values, as the guest's own
// allocator would have laid them out: in the free blocks behind the last used one, each object
// collectable on its own. Nothing in the guest runs meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "isolate/micropython/guest_memory.h"
#include "json/value.h"

namespace caisson::isolate {

class ObjectWriter {
 public:
  // The memory must be that of an instance in which nothing runs.
  explicit ObjectWriter(const GuestMemory& memory);

  // The object; nothing when the heap has no room left for it.
  std::optional<std::uint32_t> Write(const json::Value& value);
  std::optional<std::uint32_t> WriteString(std::string_view text);

  // Tells the guest's allocator what was taken. Call once, before the guest runs.
  void Commit() const;

 private:
  std::optional<std::uint32_t> Allocate(std::uint64_t bytes);
  std::optional<std::uint32_t> WriteInteger(std::string_view digits);
  std::optional<std::uint32_t> WriteDouble(double value);
  std::optional<std::uint32_t> WriteArray(const json::Array& array);
  std::optional<std::uint32_t> WriteObject(const json::Object& object);
  std::optional<std::uint32_t> WriteKey(const std::string& key);

  GuestMemory memory_;
  std::uint32_t table_ = 0;
  std::uint32_t pool_ = 0;
  std::uint64_t next_ = 0;                                    // the first free block
  std::uint64_t end_ = 0;                                     // blocks of the heap
  std::unordered_map<std::string_view, std::uint32_t> keys_;  // of this job; text of the values
};

}  // namespace caisson::isolate
