// SPDX-License-Identifier: Apache-2.0
// Durable runs: begun, found, gone on with, cancelled and forked, by whichever process is there.
// At most one process at a time runs a run; it holds it by a lease in the store. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/progress.h"
#include "graph/run.h"
#include "runs/record.h"
#include "runs/settings.h"
#include "store/workflows.h"
#include "workflow/ir.h"

namespace caisson::runs {

// A run that this process now holds.
struct Held {
  std::unique_ptr<Record> record;  // the journal; giving it up gives the run up
  graph::Progress progress;        // to go on from
  Settings settings;
  std::string ir;  // of its workflow; canonical bytes, to be checked again like any IR
};

// What is shown of a run.
struct Shown {
  store::WorkflowRun row;
  // row.status, but "crashed" for one that is running without a process that could.
  std::string status;
};

class Runs {
 public:
  explicit Runs(store::WorkflowStore& store) : store_(store) {}

  // A new run, held by this process. `config.run_id` is its id; one that exists is store.conflict.
  Result<std::unique_ptr<Record>> Begin(const workflow::Graph& graph, std::string name,
                                        const Settings& settings, const graph::RunConfig& config,
                                        const json::Value& inputs);
  // By its id or the beginning of it, if no other has that. Fails with runs.not_found or
  // runs.ambiguous.
  Result<Shown> Find(const std::string& id);
  Result<std::vector<Shown>> List(const store::RunFilter& filter);

  // Takes a run that nobody runs, to go on with it. Fails with runs.active when another process is
  // at it, runs.ended when it has succeeded, runs.damaged when its record cannot be read.
  Result<Held> Claim(const std::string& id);
  // A new run that goes on from where that one was after `step` steps (0: before its first); it is
  // held by this process. Fails with runs.no_step.
  Result<Held> Fork(const std::string& id, std::int64_t step);

  // What the run's state was after so many steps; nullopt: all that is recorded.
  Result<graph::Progress> ProgressAt(const Shown& run, std::optional<std::int64_t> step);
  // The events after that sequence number as JSON lines, at most `limit` batches of them.
  Result<std::vector<store::RunEvents>> EventsAfter(const Shown& run, std::int64_t after,
                                                    std::int64_t limit);

  // A run that nobody runs is cancelled at once; another process is asked to stop. Says whether it
  // has ended. Fails with runs.ended.
  Result<bool> Cancel(const std::string& id);
  // Forgets it. Fails with runs.active.
  Result<void> Remove(const std::string& id);

 private:
  Shown Show(store::WorkflowRun row) const;

  store::WorkflowStore& store_;
};

}  // namespace caisson::runs
