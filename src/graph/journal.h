// SPDX-License-Identifier: Apache-2.0
// Where a run's events are kept, so that the run can go on from them (graph/progress.h): in memory
// here, in the store in src/runs. A run without a journal cannot be interrupted and resumed.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "graph/events.h"

namespace caisson::graph {

class Journal {
 public:
  virtual ~Journal() = default;
  // Keeps the next events, all or none; they are safe when it returns. A run whose journal fails
  // ends there with that error, and can be resumed from what the journal has. One call at a time
  // per run, on whatever thread.
  virtual Result<void> Append(std::span<const KeptEvent> events) = 0;
};

class MemoryJournal final : public Journal {
 public:
  Result<void> Append(std::span<const KeptEvent> events) override {
    events_.insert(events_.end(), events.begin(), events.end());
    return {};
  }
  const std::vector<KeptEvent>& events() const { return events_; }

 private:
  std::vector<KeptEvent> events_;
};

}  // namespace caisson::graph
