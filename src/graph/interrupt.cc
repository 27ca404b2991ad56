// SPDX-License-Identifier: Apache-2.0
#include "graph/interrupt.h"

#include <algorithm>
#include <utility>

#include "errors/graph.h"

namespace caisson::graph {

Interrupt::Interrupt(std::stop_token stop, std::optional<Clock::time_point> deadline)
    : deadline_(deadline), on_stop_(std::move(stop), OnStop{this}) {}

void Interrupt::Raise(Reason reason) {
  {
    const std::lock_guard lock(mutex_);
    Reason none = Reason::kNone;
    if (!reason_.compare_exchange_strong(none, reason)) return;
  }
  changed_.notify_all();
}

Interrupt::Reason Interrupt::Check() {
  const Reason reason = reason_.load();
  if (reason != Reason::kNone || !deadline_ || Clock::now() < *deadline_) return reason;
  Raise(Reason::kTimedOut);
  return reason_.load();
}

Result<void> Interrupt::Sleep(std::chrono::nanoseconds duration) {
  Clock::time_point until = Clock::now() + duration;
  if (deadline_) until = std::min(until, *deadline_);
  {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, until, [&] { return reason_.load() != Reason::kNone; });
  }
  const Reason reason = Check();
  if (reason != Reason::kNone) return Fail(InterruptStatus(reason));
  return {};
}

Status InterruptStatus(Interrupt::Reason reason) {
  if (reason == Interrupt::Reason::kTimedOut) {
    return {errors::kGraphTimedOut, "the run took longer than its time limit"};
  }
  if (reason == Interrupt::Reason::kCancelled) {
    return {errors::kGraphCancelled, "the run was cancelled"};
  }
  return {errors::kGraphCancelled, "another node of the run failed"};
}

}  // namespace caisson::graph
