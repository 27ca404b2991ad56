// SPDX-License-Identifier: Apache-2.0
// The journal of one attempt at a run, in the store. It holds the run for its process: while it
// lives it renews the lease, hears of the wish to cancel, and refuses to write once another process
// has taken the run over.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/status.h"
#include "graph/journal.h"
#include "graph/progress.h"
#include "runs/settings.h"
#include "store/workflows.h"

namespace caisson::runs {

inline constexpr store::Milliseconds kLease = 30'000;
using store::Now;

class Record final : public graph::Journal {
 public:
  // `run` must be owned by `run.owner` in the store, which outlives this; `progress` is what its
  // events say so far, `snapshot_bytes` how large its last snapshot was. `before` is what the run
  // was until it was taken; nullopt for one that is new.
  Record(store::WorkflowStore& store, store::WorkflowRun run,
         std::optional<store::WorkflowRun> before, graph::Progress progress,
         std::size_t snapshot_bytes);
  // Gives the run up. One that nothing was appended to is as it was before.
  ~Record() override;
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  const store::WorkflowRun& run() const { return run_; }
  // Before the attempt's first event.
  const graph::Progress& progress() const { return progress_; }
  // Is stopped when the run is to be cancelled or is no longer ours.
  std::stop_token stop() const { return stop_.get_token(); }

  // What the run goes on under from now on; undone with the rest of an attempt that appends
  // nothing. Fails as Append does.
  Result<void> Replace(const Settings& settings);
  // Fails with runs.taken when another process owns the run now, and as the store does.
  Result<void> Append(std::span<const graph::KeptEvent> events) override;

 private:
  Result<void> Write(store::WorkflowRows& rows, const store::RunEvents& events);
  Result<void> GiveUp(store::WorkflowRows& rows);
  Result<void> PutSnapshot(store::WorkflowRows& rows, std::int64_t sequence);
  Result<void> CheckClaim(store::WorkflowRows& rows);
  void TakeEnd(const graph::KeptEvent& event);
  void Watch(const std::stop_token& end);
  void Renew();

  store::WorkflowStore& store_;
  const std::string owner_;
  const std::optional<store::WorkflowRun> before_;
  std::mutex mutex_;  // over the next three
  store::WorkflowRun run_;
  graph::Progress progress_;
  bool has_ended_ = false;
  bool has_begun_ = false;            // something was appended
  std::size_t unsnapshot_bytes_ = 0;  // of events since the last snapshot
  std::size_t snapshot_bytes_;
  std::stop_source stop_;
  std::mutex watch_mutex_;
  std::condition_variable_any wake_;
  std::jthread watcher_;  // last
};

}  // namespace caisson::runs
