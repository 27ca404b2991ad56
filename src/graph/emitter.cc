// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "graph/context.h"

namespace caisson::graph {

void Emitter::Emit(Event event) {
  const std::lock_guard lock(mutex_);
  event.sequence = ++sequence_;
  event.elapsed = Clock::now() - start_;
  event.run_id = run_id_;
  if (journal_ == nullptr) {
    sink_->OnEvent(event);
  } else {
    pending_.emplace_back(event);
  }
}

void Emitter::Between(const std::function<void(std::uint64_t after)>& tell) {
  const std::lock_guard lock(mutex_);
  tell(sequence_);
}

Result<void> Emitter::Commit() {
  if (!active()) return {};
  const std::lock_guard lock(mutex_);
  if (journal_ == nullptr) {
    sink_->Flush();
    return {};
  }
  if (lost_) return Fail(*lost_);
  if (pending_.empty()) return {};
  if (auto kept = journal_->Append(pending_); !kept) {
    lost_ = std::move(kept).error();
    return Fail(*lost_);
  }
  for (const KeptEvent& event : pending_) {
    if (sink_ != nullptr) sink_->OnEvent(event.View());
  }
  if (sink_ != nullptr) sink_->Flush();
  pending_.clear();
  return {};
}

}  // namespace caisson::graph
