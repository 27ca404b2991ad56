// SPDX-License-Identifier: Apache-2.0
// How much a run may hold at once: its state, what the nodes of the current step have already
// written, the states of its subgraphs. Counted as if values shared nothing, so that a few
// references to one large text count as what they become when they are written out. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "errors/graph.h"

namespace caisson::graph {

class Budget {
 public:
  explicit Budget(std::size_t limit) : limit_(static_cast<std::int64_t>(limit)) {}

  // Counts `weight` (of Weigh) in; fails with graph.state_too_large and then counts nothing.
  Result<void> Take(std::size_t weight) {
    const auto more = static_cast<std::int64_t>(weight);
    if (held_.fetch_add(more, std::memory_order_relaxed) + more <= limit_) return {};
    Change(-more);
    return Fail(Status{
        .code = errors::kGraphStateTooLarge,
        .message = "the run's state would be larger than " + std::to_string(limit_) +
                   " bytes (counted with shared parts written out, 64 bytes a value)",
        .details = "keep less in the state, or give the run a larger limit (caisson run --state)"});
  }
  // Corrects the count, without a check.
  void Change(std::int64_t weight) { held_.fetch_add(weight, std::memory_order_relaxed); }
  std::int64_t held() const { return held_.load(std::memory_order_relaxed); }

 private:
  const std::int64_t limit_;
  std::atomic<std::int64_t> held_{0};
};

}  // namespace caisson::graph
