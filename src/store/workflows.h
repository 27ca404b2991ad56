// SPDX-License-Identifier: Apache-2.0
// What workflow runs leave behind: the frozen workflows, the runs with their events and snapshots,
// sealed secrets. Plain rows, no policy: who may write a run's events, and what they mean, is
// decided in src/runs and src/graph. Several processes may use one store at a time. Rows belong to
// the call that they were given to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/transactions.h"

namespace caisson::store {

using Milliseconds = std::int64_t;  // since 1970, UTC
Milliseconds Now();

struct Workflow {
  std::string hash;  // of the IR's canonical bytes
  std::string ir;    // these bytes
  std::string name;  // of the file that it came from, as far as known
  Milliseconds created_at = 0;
};

struct WorkflowRun {
  std::int64_t number = 0;  // given by the store; below 2^31
  std::string id;
  std::string workflow;  // hash
  std::string name;
  std::string status;    // of graph::RunStatusName, or "running"
  std::string settings;  // a JSON object (runs/settings.h)
  std::string owner;     // who runs it; empty: nobody
  Milliseconds lease_until = 0;
  bool cancel = false;  // the owner is asked to stop it
  std::string parent;   // id of the run that it was forked from; empty: none
  std::int64_t parent_step = 0;
  std::int64_t steps = 0;  // completed, when it was last left
  std::string error;       // of its last end: a JSON object, or empty
  std::string questions;   // a JSON array, or empty
  Milliseconds created_at = 0;
  Milliseconds updated_at = 0;
  std::optional<Milliseconds> ended_at;
};

struct RunFilter {
  std::vector<std::string> statuses;  // empty: all
  std::string workflow;               // hash; empty: all
  std::int64_t limit = 100;
  std::int64_t offset = 0;
};

// Events that became safe together, and all of which were one super-step at most.
struct RunEvents {
  std::int64_t first = 0;  // sequence numbers; below 2^32
  std::int64_t last = 0;
  std::string lines;  // one JSON document each, ended by "\n"
};

// What the events up to a sequence number come to.
struct RunSnapshot {
  std::int64_t sequence = 0;
  std::string progress;  // JSON (graph::Progress)
};

// A secret; what it is sealed with is not in the store (src/vault).
struct Secret {
  std::string id;  // a UUID
  std::string name;
  std::string kind;  // "secret", "oauth"
  std::string sealed;
  Milliseconds created_at = 0;
  Milliseconds updated_at = 0;
};

// A file that a node has stored for people.
struct StoredFile {
  std::string id;
  std::string name;  // the author's words, as the type
  std::string mime_type;
  std::string content;  // any text
  Milliseconds created_at = 0;
};

// Finders give an empty optional when there is no such row. Inserting what exists already fails
// with store.conflict; else with store.failed, store.full, store.locked or store.corrupt.
class WorkflowRows {
 public:
  virtual ~WorkflowRows() = default;

  virtual Result<void> PutWorkflow(const Workflow& workflow) = 0;  // unless it is there
  virtual Result<std::optional<Workflow>> FindWorkflow(const std::string& hash) = 0;

  virtual Result<std::int64_t> InsertRun(const WorkflowRun& run) = 0;  // gives its number
  virtual Result<std::optional<WorkflowRun>> FindRun(const std::string& id) = 0;
  // All whose id begins so, at most `limit`.
  virtual Result<std::vector<WorkflowRun>> RunsLike(const std::string& prefix,
                                                    std::int64_t limit) = 0;
  virtual Result<std::vector<WorkflowRun>> Runs(const RunFilter& filter) = 0;  // newest first
  // Writes all but number, id, workflow, parent and created_at.
  virtual Result<void> UpdateRun(const WorkflowRun& run) = 0;
  virtual Result<void> DeleteRun(std::int64_t number) = 0;

  // The owner and the wish to cancel alone, which are looked at with every step.
  struct Claim {
    std::string owner;
    bool cancel = false;
  };
  virtual Result<std::optional<Claim>> FindClaim(std::int64_t number) = 0;

  virtual Result<void> AppendEvents(std::int64_t number, const RunEvents& events) = 0;
  // Those with a sequence number above `after`, in order; the first may also hold some before.
  virtual Result<std::vector<RunEvents>> EventsAfter(std::int64_t number, std::int64_t after,
                                                     std::int64_t limit) = 0;
  virtual Result<void> PutSnapshot(std::int64_t number, const RunSnapshot& snapshot) = 0;
  // The last one at or before that sequence number.
  virtual Result<std::optional<RunSnapshot>> SnapshotAt(std::int64_t number,
                                                        std::int64_t sequence) = 0;

  virtual Result<void> PutSecret(const Secret& secret) = 0;  // inserts or replaces, by id
  virtual Result<std::optional<Secret>> FindSecret(const std::string& id_or_name) = 0;
  virtual Result<std::vector<Secret>> Secrets() = 0;  // by name
  virtual Result<bool> DeleteSecret(const std::string& id_or_name) = 0;
  // A sealed text by which a key is known; empty: there is none yet.
  virtual Result<std::string> KeyCheck() = 0;
  virtual Result<void> PutKeyCheck(const std::string& sealed) = 0;

  // The long-term store of workflows: a JSON text by namespace (a JSON array) and key.
  virtual Result<std::optional<std::string>> FindItem(const std::string& space,
                                                      const std::string& key) = 0;
  virtual Result<void> PutItem(const std::string& space, const std::string& key,
                               const std::string& value, Milliseconds at) = 0;

  virtual Result<void> InsertFile(const StoredFile& file) = 0;
  virtual Result<std::optional<StoredFile>> FindFile(const std::string& id) = 0;
  virtual Result<bool> DeleteFile(const std::string& id) = 0;
};

using WorkflowStore = Transactions<WorkflowRows>;

}  // namespace caisson::store
