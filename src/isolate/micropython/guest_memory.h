// SPDX-License-Identifier: Apache-2.0
// The linear memory of one instance, read and written by address. The guest may have written
// anything into it: every access is checked, and a read outside gives 0.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace caisson::isolate {

class GuestMemory {
 public:
  GuestMemory() = default;
  GuestMemory(std::uint8_t* data, std::uint64_t size) : data_(data), size_(size) {}

  std::uint64_t size() const { return size_; }
  std::uint8_t* data() const { return data_; }

  bool Holds(std::uint64_t address, std::uint64_t length) const {
    return length <= size_ && address <= size_ - length;
  }
  std::uint32_t Word(std::uint64_t address) const { return Read<std::uint32_t>(address); }
  template <typename T>
  T Read(std::uint64_t address) const {
    T value{};
    if (Holds(address, sizeof value)) std::memcpy(&value, data_ + address, sizeof value);
    return value;
  }
  // Empty when the range is not inside.
  std::string_view Bytes(std::uint64_t address, std::uint64_t length) const {
    if (!Holds(address, length)) return {};
    return {reinterpret_cast<const char*>(data_ + address), static_cast<std::size_t>(length)};
  }
  template <typename T>
  void Write(std::uint64_t address, T value) const {
    if (Holds(address, sizeof value)) std::memcpy(data_ + address, &value, sizeof value);
  }
  void WriteBytes(std::uint64_t address, std::string_view bytes) const {
    if (Holds(address, bytes.size())) std::memcpy(data_ + address, bytes.data(), bytes.size());
  }

 private:
  std::uint8_t* data_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace caisson::isolate
