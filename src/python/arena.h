// SPDX-License-Identifier: Apache-2.0
// Bump allocator for AST nodes. Everything in it is trivially destructible and dies with it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace caisson::python {

class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // A value-initialised T.
  template <typename T>
  T* New() {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (Allocate(sizeof(T), alignof(T))) T{};
  }

  // `count` value-initialised T, never null.
  template <typename T>
  T* NewArray(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    // T may be a pointer, whose own size is meant. NOLINTNEXTLINE(bugprone-sizeof-expression)
    T* items = static_cast<T*>(Allocate(count * sizeof(T), alignof(T)));
    std::uninitialized_value_construct_n(items, count);
    return items;
  }

  template <typename T>
  std::span<T const> Copy(std::span<T const> items) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (items.empty()) return {};
    T* memory = static_cast<T*>(Allocate(items.size_bytes(), alignof(T)));
    std::uninitialized_copy(items.begin(), items.end(), memory);
    return {memory, items.size()};
  }

  // Never has a null data(), also when empty.
  std::string_view Copy(std::string_view text) {
    char* memory = static_cast<char*>(Allocate(std::max<std::size_t>(text.size(), 1), 1));
    std::copy(text.begin(), text.end(), memory);
    return {memory, text.size()};
  }

  std::size_t bytes_allocated() const { return allocated_; }

 private:
  static constexpr std::size_t kBlock = std::size_t{64} * 1024;

  void* Allocate(std::size_t size, std::size_t alignment) {
    std::size_t offset = (used_ + alignment - 1) & ~(alignment - 1);
    if (blocks_.empty() || offset + size > capacity_) {
      capacity_ = std::max(kBlock, size);
      blocks_.push_back(std::make_unique<std::byte[]>(capacity_));
      allocated_ += capacity_;
      offset = 0;
    }
    used_ = offset + size;
    return blocks_.back().get() + offset;
  }

  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::size_t used_ = 0;
  std::size_t capacity_ = 0;
  std::size_t allocated_ = 0;
};

}  // namespace caisson::python
