// SPDX-License-Identifier: Apache-2.0
// Why a run, or a part of it, has to end early, if it has to: cancelled from outside, out of time,
// or one of its nodes failed. A part (the nodes of one graph, one node with a time limit) also ends
// when what it is part of does; what stops a part says nothing about the rest. The first reason
// stands. Wakes whoever sleeps. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "base/status.h"

namespace caisson::graph {

using Clock = std::chrono::steady_clock;

class Interrupt {
 public:
  enum class Reason : std::uint8_t { kNone, kFailed, kCancelled, kTimedOut, kNodeTimedOut };

  // Of a run. `stop` cancels; at `deadline` it is out of time.
  Interrupt(std::stop_token stop, std::optional<Clock::time_point> deadline);
  // Of a part, which must not outlive `outer`; at `deadline` the part alone is out of time.
  explicit Interrupt(Interrupt& outer, std::optional<Clock::time_point> deadline = std::nullopt);
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  void Raise(Reason reason);
  // Looks at the clock, too.
  Reason Check();
  // The nearest one, of this part or of what it is part of.
  std::optional<Clock::time_point> deadline() const { return nearest_; }

  // Returns after `duration`, or early with graph.cancelled, graph.timed_out or
  // graph.node_timed_out.
  Result<void> Sleep(std::chrono::nanoseconds duration);

 private:
  struct Bell {
    std::mutex mutex;
    std::condition_variable rung;
  };
  struct OnStop {
    Interrupt* self;
    void operator()() const { self->Raise(Reason::kCancelled); }
  };
  Reason Raised() const;

  Interrupt* const outer_ = nullptr;
  std::atomic<Reason> reason_{Reason::kNone};
  const std::optional<Clock::time_point> deadline_;
  const std::optional<Clock::time_point> nearest_;
  const std::shared_ptr<Bell> bell_;  // of the whole run
  // Last, so that it is the first to go.
  std::optional<std::stop_callback<OnStop>> on_stop_;
};

// The status of a node that did not run, or stopped, for that reason.
Status InterruptStatus(Interrupt::Reason reason);

}  // namespace caisson::graph
