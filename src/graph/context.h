// SPDX-License-Identifier: Apache-2.0
// What all parts of one run share. Lives as long as the run; its members are thread-safe.
#pragma once

#include <atomic>
#include <expected>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "graph/budget.h"
#include "graph/events.h"
#include "graph/interrupt.h"
#include "graph/messages.h"
#include "graph/planned.h"
#include "graph/pool.h"
#include "graph/reducer.h"
#include "graph/run.h"

namespace caisson::graph {

struct Failure {
  RunStatus status = RunStatus::kFailed;
  RunError error;
  // The node only stopped because another one had failed.
  bool is_consequence = false;
};

// Numbers events and hands them to the sink, one at a time.
class Emitter {
 public:
  Emitter(EventSink* sink, std::string_view run_id)
      : sink_(sink), run_id_(run_id), start_(Clock::now()) {}
  bool active() const { return sink_ != nullptr; }
  Clock::time_point start() const { return start_; }
  void Emit(Event event);

 private:
  EventSink* sink_;
  std::string_view run_id_;
  Clock::time_point start_;
  std::mutex mutex_;
  std::uint64_t sequence_ = 0;
};

struct RunContext {
  RunContext(const Plan& plan, const RunConfig& config, const Services& services,
             std::string run_id);

  void Log(nodes::LogLevel level, std::string_view message);

  const RunConfig& config;
  const Services& services;
  const nodes::Table& table;
  const std::string run_id;
  Interrupt interrupt;
  Emitter emitter;
  Pool pool;
  Budget budget;
  IdMaker new_id;
  json::Value guest_config;  // the configurable values that guests may see, an object
  std::function<void(std::string_view)> warn;
  std::atomic<std::uint64_t> visits{0};

 private:
  std::mutex log_mutex_;
};

// Where in the run a node is visited.
struct Place {
  const std::string& graph_path;  // "" for the root
  int step;
};

struct VisitResult {
  Update update;
  std::size_t weight;                      // of the update, taken from the run's budget
  std::optional<NodeIndex> branch_target;  // where its conditional edge leads
};

// Runs one node: events, metrics, result, branch. (visit.cc)
std::expected<VisitResult, Failure> VisitNode(RunContext& context, const PlannedNode& node,
                                              const nodes::State& state, const Place& place);

// Runs a native node or a step of one. (native_visit.cc)
Result<json::Value> RunNative(RunContext& context, const NativePart& native,
                              const std::string& name, const nodes::State& state);

// What a code node gave, or why it gave nothing. (code_visit.cc)
struct CodeFailure {
  RunError error;
  Ending ending;
  bool timed_out = false;  // by the run's time limit, not by the call's own
};
std::expected<json::Value, CodeFailure> RunCode(RunContext& context, const PlannedNode& node,
                                                const nodes::State& state);

// Where the node's conditional edge leads after `update`. Fails with graph.branch. (branch.cc)
Result<NodeIndex> FollowBranch(const Branch& branch, const nodes::State& state,
                               const Update& update, const IdMaker& new_id);

// Runs a graph to its end. `state` is what it starts with and, when it succeeded, what it ended
// with; when it failed, what the failing step started with. `steps` counts completed steps.
// `delta`, when given, collects what was written. (runner.cc)
std::expected<void, Failure> RunGraph(RunContext& context, const PlannedGraph& graph,
                                      const std::string& graph_path, nodes::State& state,
                                      int& steps, Update* delta);

// A failure for what an interrupt stopped.
Failure InterruptFailure(Interrupt::Reason reason);

}  // namespace caisson::graph
