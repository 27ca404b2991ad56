// SPDX-License-Identifier: Apache-2.0
#include "control/activity.h"

#include <utility>

namespace caisson::control {

Use::Use(Activity& activity, std::string sandbox)
    : activity_(&activity), sandbox_(std::move(sandbox)) {
  activity_->Begin(sandbox_);
}
Use::Use(Use&& other) noexcept
    : activity_(std::exchange(other.activity_, nullptr)), sandbox_(std::move(other.sandbox_)) {}
Use::~Use() {
  if (activity_ != nullptr) activity_->End(sandbox_);
}

void Activity::Begin(const std::string& sandbox) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[sandbox];
  ++entry.users;
  entry.last = now_();
}

void Activity::End(const std::string& sandbox) {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(sandbox);
  if (entry == entries_.end()) return;  // forgotten while in use
  --entry->second.users;
  entry->second.last = now_();
}

std::optional<store::Milliseconds> Activity::IdleSince(const std::string& sandbox) {
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = entries_.try_emplace(sandbox, Entry{.last = now_()});
  if (entry->second.users > 0) return std::nullopt;
  return entry->second.last;
}

bool Activity::InUse(const std::string& sandbox) { return !IdleSince(sandbox); }

void Activity::Touch(const std::string& sandbox) {
  const std::lock_guard lock(mutex_);
  entries_[sandbox].last = now_();
}

void Activity::Forget(const std::string& sandbox) {
  const std::lock_guard lock(mutex_);
  entries_.erase(sandbox);
}

}  // namespace caisson::control
