// SPDX-License-Identifier: Apache-2.0
// Bounds what one tenant has under way, so that no tenant takes all threads. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace caisson::api {

class TenantSlots {
 public:
  explicit TenantSlots(std::size_t most) : most_(most) {}

  class Slot {
   public:
    Slot(TenantSlots& slots, std::string tenant) : slots_(&slots), tenant_(std::move(tenant)) {}
    Slot(Slot&& other) noexcept
        : slots_(std::exchange(other.slots_, nullptr)), tenant_(std::move(other.tenant_)) {}
    Slot& operator=(Slot&&) = delete;
    ~Slot() {
      if (slots_ != nullptr) slots_->Free(tenant_);
    }

   private:
    TenantSlots* slots_;
    std::string tenant_;
  };

  // Empty when the tenant has as many as it may.
  std::optional<Slot> Take(const std::string& tenant) {
    const std::lock_guard lock(mutex_);
    std::size_t& used = used_[tenant];
    if (used >= most_) return std::nullopt;
    ++used;
    return Slot(*this, tenant);
  }

 private:
  void Free(const std::string& tenant) {
    const std::lock_guard lock(mutex_);
    const auto entry = used_.find(tenant);
    if (--entry->second == 0) used_.erase(entry);
  }

  std::size_t most_;
  std::mutex mutex_;
  std::map<std::string, std::size_t> used_;
};

}  // namespace caisson::api
