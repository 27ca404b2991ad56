// SPDX-License-Identifier: Apache-2.0
// Why a run has to end early, if it has to: cancelled from outside, out of time, or failed in one
// of its nodes. The first reason stands. Wakes whoever sleeps. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>

#include "base/status.h"

namespace caisson::graph {

using Clock = std::chrono::steady_clock;

class Interrupt {
 public:
  enum class Reason : std::uint8_t { kNone, kFailed, kCancelled, kTimedOut };

  // `stop` cancels; at `deadline` the run is out of time.
  Interrupt(std::stop_token stop, std::optional<Clock::time_point> deadline);

  void Raise(Reason reason);
  // Looks at the clock, too.
  Reason Check();
  std::optional<Clock::time_point> deadline() const { return deadline_; }

  // Returns after `duration`, or early with graph.cancelled or graph.timed_out.
  Result<void> Sleep(std::chrono::nanoseconds duration);

 private:
  struct OnStop {
    Interrupt* self;
    void operator()() const { self->Raise(Reason::kCancelled); }
  };
  std::atomic<Reason> reason_{Reason::kNone};
  const std::optional<Clock::time_point> deadline_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::stop_callback<OnStop> on_stop_;  // last, so that it is the first to go
};

// The status of a node that did not run, or stopped, for that reason.
Status InterruptStatus(Interrupt::Reason reason);

}  // namespace caisson::graph
