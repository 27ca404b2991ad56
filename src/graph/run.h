// SPDX-License-Identifier: Apache-2.0
// Runs a Plan: inputs in, final state out, events on the way. Super-steps as in Pregel: a node runs
// in step k+1 when one of its sources finished in step k; all nodes of a step see the same state;
// their updates are applied at its end, in the order of the nodes' ids. Run() is thread-safe and
// blocks; it returns only when every node that it started has ended.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/credentials.h"
#include "graph/delta.h"
#include "graph/events.h"
#include "graph/journal.h"
#include "graph/metrics.h"
#include "graph/plan.h"
#include "graph/policy.h"
#include "graph/progress.h"
#include "host/provider.h"
#include "http/outbound.h"
#include "isolate/runtime.h"
#include "json/value.h"
#include "nodes/node.h"
#include "workflow/code_runtime.h"

namespace caisson::graph {

inline constexpr int kDefaultRecursionLimit = 10007;
inline constexpr int kMaxRecursionLimit = 250;
inline constexpr int kMaxConcurrency = 32;
inline constexpr std::size_t kDefaultStateBytes = 256u << 20;

// What happens to a value that has no JSON form on its way into a code node.
enum class Policy : std::uint8_t { kDrop, kRaise };

struct RunConfig {
  json::Object configurable;  // reaches nodes and guests; keys that start with "__" never a guest
  std::vector<std::string> tags;
  json::Object metadata;
  json::Array callbacks;
  std::optional<std::string> run_name;
  std::optional<int> recursion_limit;  // 1..250; unset: kDefaultRecursionLimit
  std::optional<int> max_concurrency;  // 1..32; unset: 32
  // Not part of the peer's configuration:
  Policy policy = Policy::kDrop;
  workflow::CodeRuntimes runtimes;                   // of the code nodes
  isolate::Limits limits;                            // of each call of a code node
  std::size_t state_bytes = kDefaultStateBytes;      // of the whole state, see graph/budget.h
  std::optional<std::chrono::milliseconds> timeout;  // of the whole run
  NodePolicies policies;                             // retries and time limits of nodes
  UsageLimits budget;
  std::string run_id;  // empty: a fresh UUID
  std::optional<std::string> workspace_id;
};

// From the JSON form: configurable, tags (trimmed, blank and repeated ones dropped), metadata,
// callbacks, run_name, recursion_limit, max_concurrency; and our own timeout_seconds, retry,
// node_timeout_seconds, nodes and budget (graph/policy.h, docs/runs.md). Other keys and values out
// of range are refused with graph.config, naming the JSON path.
Result<RunConfig> ParseRunConfig(const json::Value& config);

// Everything that a run uses of its surroundings; all may be null and must outlive the run.
struct Services {
  // Each is needed when RunConfig::runtimes chooses it for a code node.
  isolate::Runtime* micropython = nullptr;
  isolate::Runtime* cpython = nullptr;
  isolate::Runtime* Of(workflow::CodeRuntime runtime) const {
    return runtime == workflow::CodeRuntime::kCPython ? cpython : micropython;
  }

  host::Provider* host = nullptr;             // needed when the plan has nodes that it serves
  CredentialResolver* credentials = nullptr;  // needed when a visited node has a placeholder
  http::Outbound* network = nullptr;          // needed when a visited node sends requests
  nodes::Blobs* blobs = nullptr;              // needed by nodes that store files
  nodes::Items* items = nullptr;              // needed by nodes that use the long-term store
  Journal* journal = nullptr;                 // null: the run is not recorded and cannot be resumed
  EventSink* events = nullptr;
  Metrics* metrics = nullptr;
  // Warnings and what DebugNode says, one call at a time per run. Null: dropped.
  std::function<void(nodes::LogLevel, std::string_view)> log;
  // Answers and tools while they are at it, one at a time, never during an event. Null: dropped.
  std::function<void(const Delta&)> deltas;
  std::stop_token stop;                         // cancels the run
  std::function<std::string()> new_message_id;  // thread-safe; null: random UUIDs
};

enum class RunStatus : std::uint8_t { kSucceeded, kFailed, kCancelled, kTimedOut, kInterrupted };
// "succeeded", "failed", "cancelled", "timed_out", "interrupted"
std::string_view RunStatusName(RunStatus status);

// Why a run did not succeed. Every part but the code and the message may be absent.
struct RunError {
  ErrorCode code;
  std::string message;     // as the peer words it where it has an error of its own
  std::string node_id;     // of the failing node; of the innermost one within subgraphs
  std::string node_path;   // "outer/inner"
  int step = 0;            // the super-step of the root graph, from 1; 0 before the first
  SourceSpan span;         // where the node stands in the author's file
  std::string error_type;  // class of the guest's exception
  std::vector<AuthorFrame> traceback;  // outermost first
  std::string hint;                    // what to do
  std::string guest_output;            // what the failing body printed, may be cut
  json::Value ToJson() const;
};

struct RunResult {
  RunStatus status = RunStatus::kSucceeded;
  json::Value state;  // the final state; of a run that failed: at the start of the failing step
  std::optional<RunError> error;
  std::vector<Question> questions;  // of a run that was interrupted; by the path of the node
  std::string run_id;
  int steps = 0;                  // super-steps of the root graph that were completed
  std::uint64_t node_visits = 0;  // in all attempts, as the tokens
  std::int64_t tokens = 0;
  std::chrono::nanoseconds duration{0};
  json::Object runtimes;  // code node -> name of the runtime that it has in this run
  bool ok() const { return status == RunStatus::kSucceeded; }
};

// `inputs` becomes the state's `inputs`; any JSON value is taken. A Status means that the run could
// not start (graph.no_runtime, graph.config, graph.state_too_large, graph.too_deep); what happens
// within it is part of the result.
Result<RunResult> Run(const Plan& plan, json::Value inputs, const RunConfig& config,
                      const Services& services);

// What a run with these inputs begins with.
nodes::State InitialState(json::Value inputs, const RunConfig& config, const std::string& run_id);

// The run goes on from `progress`, which must be what the journal's events say: what had finished
// is not run again, what had not is, from its start. `answers` holds answers to questions by the
// path of the node that asked. config.run_id must be the run's. Fails as Run does, and with
//   graph.other_workflow  the plan lacks a node that the run was at
//   graph.answer          an answer is for a node that has no question
// A run that has succeeded is not resumed: graph.config.
Result<RunResult> Resume(const Plan& plan, const Progress& progress, const json::Object& answers,
                         const RunConfig& config, const Services& services);

}  // namespace caisson::graph
