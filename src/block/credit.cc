// SPDX-License-Identifier: Apache-2.0
#include "block/credit.h"

#include <algorithm>
#include <limits>

namespace caisson::block {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 4;

std::int64_t Bounded(std::uint64_t bytes) {
  return static_cast<std::int64_t>(std::min(bytes, static_cast<std::uint64_t>(kMost)));
}

}  // namespace

CreditWindow::CreditWindow(std::optional<std::uint64_t> credit)
    : exists_(credit.has_value()), open_(!credit), balance_(Bounded(credit.value_or(0))) {}

void CreditWindow::Add(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  balance_ = std::min(balance_ + Bounded(bytes), kMost);
  changed_.notify_all();
}

void CreditWindow::Lift() {
  const std::lock_guard lock(mutex_);
  open_ = true;
  changed_.notify_all();
}

bool CreditWindow::Wait(const std::stop_token& stop,
                        std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, stop, deadline, [this] { return open_ || balance_ > 0; });
}

void CreditWindow::Spend(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  balance_ = std::max(balance_ - Bounded(bytes), -kMost);
}

}  // namespace caisson::block
