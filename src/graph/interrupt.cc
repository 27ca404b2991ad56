// SPDX-License-Identifier: Apache-2.0
#include "graph/interrupt.h"

#include <algorithm>
#include <utility>

#include "errors/graph.h"

namespace caisson::graph {
namespace {

std::optional<Clock::time_point> Nearest(std::optional<Clock::time_point> a,
                                         std::optional<Clock::time_point> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace

Interrupt::Interrupt(std::stop_token stop, std::optional<Clock::time_point> deadline)
    : deadline_(deadline), nearest_(deadline), bell_(std::make_shared<Bell>()) {
  on_stop_.emplace(std::move(stop), OnStop{this});
}

Interrupt::Interrupt(Interrupt& outer, std::optional<Clock::time_point> deadline)
    : outer_(&outer),
      deadline_(deadline),
      nearest_(Nearest(deadline, outer.nearest_)),
      bell_(outer.bell_) {}

void Interrupt::Raise(Reason reason) {
  {
    const std::lock_guard lock(bell_->mutex);
    Reason none = Reason::kNone;
    if (!reason_.compare_exchange_strong(none, reason)) return;
  }
  bell_->rung.notify_all();
}

Interrupt::Reason Interrupt::Raised() const {
  const Reason reason = reason_.load();
  return reason != Reason::kNone || outer_ == nullptr ? reason : outer_->Raised();
}

Interrupt::Reason Interrupt::Check() {
  if (const Reason reason = reason_.load(); reason != Reason::kNone) return reason;
  if (outer_ != nullptr) {
    if (const Reason reason = outer_->Check(); reason != Reason::kNone) return reason;
  }
  if (!deadline_ || Clock::now() < *deadline_) return Reason::kNone;
  Raise(outer_ == nullptr ? Reason::kTimedOut : Reason::kNodeTimedOut);
  return reason_.load();
}

Result<void> Interrupt::Sleep(std::chrono::nanoseconds duration) {
  const Clock::time_point until = *Nearest(Clock::now() + duration, nearest_);
  {
    std::unique_lock lock(bell_->mutex);
    bell_->rung.wait_until(lock, until, [&] { return Raised() != Reason::kNone; });
  }
  const Reason reason = Check();
  if (reason != Reason::kNone) return Fail(InterruptStatus(reason));
  return {};
}

Status InterruptStatus(Interrupt::Reason reason) {
  switch (reason) {
    case Interrupt::Reason::kTimedOut:
      return {errors::kGraphTimedOut, "the run took longer than its time limit"};
    case Interrupt::Reason::kNodeTimedOut:
      return {errors::kGraphNodeTimedOut, "the node took longer than its time limit"};
    case Interrupt::Reason::kCancelled:
      return {errors::kGraphCancelled, "the run was cancelled"};
    default:
      return {errors::kGraphCancelled, "another node of the run failed"};
  }
}

}  // namespace caisson::graph
