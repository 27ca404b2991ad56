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
#include <vector>

#include "graph/budget.h"
#include "graph/events.h"
#include "graph/interrupt.h"
#include "graph/journal.h"
#include "graph/messages.h"
#include "graph/planned.h"
#include "graph/policy.h"
#include "graph/pool.h"
#include "graph/progress.h"
#include "graph/reducer.h"
#include "graph/run.h"

namespace caisson::graph {

struct Failure {
  RunStatus status = RunStatus::kFailed;
  RunError error;
  // The node only stopped because another one had failed.
  bool is_consequence = false;
};

// Numbers events, and hands them first to the journal and then to the sink, one at a time.
class Emitter {
 public:
  // `sequence` is that of the last event that the journal has.
  Emitter(EventSink* sink, Journal* journal, std::string_view run_id, std::uint64_t sequence)
      : sink_(sink),
        journal_(journal),
        run_id_(run_id),
        start_(Clock::now()),
        sequence_(sequence) {}
  bool active() const { return sink_ != nullptr || journal_ != nullptr; }
  bool records() const { return journal_ != nullptr; }
  Clock::time_point start() const { return start_; }
  void Emit(Event event);
  // Calls `tell` between two events, with the number of the earlier one.
  void Between(const std::function<void(std::uint64_t after)>& tell);
  // Everything that was emitted is in the journal when it returns, if there is one. Once it has
  // failed it goes on failing.
  Result<void> Commit();

 private:
  EventSink* const sink_;
  Journal* const journal_;
  const std::string_view run_id_;
  const Clock::time_point start_;
  std::mutex mutex_;
  std::uint64_t sequence_;
  std::vector<KeptEvent> pending_;  // with a journal: not in it yet
  std::optional<Status> lost_;
};

// What a run has used, and may use. Thread-safe.
class Meter {
 public:
  Meter(const UsageLimits& limits, const Usage& before)
      : limits_(limits),
        visits_(before.visits),
        tokens_(before.tokens),
        isolate_ns_(before.isolate_time.count()) {}
  // Each counts and fails with graph.budget when it is more than there is.
  Result<void> CountVisit();
  Result<void> CountTokens(std::int64_t tokens);
  Result<void> CountIsolate(std::chrono::nanoseconds time);
  std::uint64_t visits() const { return static_cast<std::uint64_t>(visits_.load()); }
  std::int64_t tokens() const { return tokens_.load(); }

 private:
  const UsageLimits limits_;
  std::atomic<std::int64_t> visits_;
  std::atomic<std::int64_t> tokens_;
  std::atomic<std::int64_t> isolate_ns_;
};

struct RunContext {
  RunContext(const Plan& plan, const RunConfig& config, const Services& services,
             std::string run_id, const Progress* progress);

  void Log(nodes::LogLevel level, std::string_view message);
  void AddQuestion(Question question);
  // By the path of the node that asks.
  std::vector<Question> TakeQuestions();

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
  Meter meter;

 private:
  std::mutex log_mutex_;
  std::mutex questions_mutex_;
  std::vector<Question> questions_;
};

// Within the graph of a tool nothing is an event of the run.
struct ToolScope {
  std::function<void(const Event& event)> tell;  // from any thread; instead of the emitter
  std::atomic<std::int64_t>* tokens;             // used by the visits
};

// Where in the run a node is visited.
struct Place {
  const std::string& graph_path;  // "" for the root
  int step;                       // of that graph
  Interrupt& interrupt;           // of that graph's visits
  const GraphProgress* from;      // of that graph, when its current step goes on; else null
  ToolScope* tool = nullptr;      // of the tool whose graph it is, or is part of
};

// What a node asks and has been answered during one visit.
struct Dialogue {
  const std::vector<json::Value>* answers = nullptr;  // that it has been given before; may be null
  std::size_t heard = 0;                              // of them
  std::optional<json::Value> question;                // for which there is no answer yet
};

// What a visit needs of where it happens, for the node's own code.
struct VisitScope {
  Interrupt& interrupt;
  Dialogue& dialogue;
  const Place& place;
  std::int64_t tokens = 0;  // used by it
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
Result<json::Value> RunNative(RunContext& context, VisitScope& scope, const NativePart& native,
                              const std::string& name, const nodes::State& state);

// What a code node gave, or why it gave nothing. (code_visit.cc)
struct CodeFailure {
  RunError error;
  Ending ending;
  bool timed_out = false;  // by the run's time limit, not by the call's own
};
std::expected<json::Value, CodeFailure> RunCode(RunContext& context, Interrupt& interrupt,
                                                const PlannedNode& node, const nodes::State& state);

// Where the node's conditional edge leads after `update`. Fails with graph.branch. (branch.cc)
Result<NodeIndex> FollowBranch(const Branch& branch, const nodes::State& state,
                               const Update& update, const IdMaker& new_id);

// Where a graph runs within its run, and how far it had come.
struct GraphVisit {
  const PlannedGraph& graph;
  const std::string& path;
  Interrupt& interrupt;       // of what the graph is part of
  const GraphProgress* from;  // null: from its start
  ToolScope* tool = nullptr;  // of the tool whose graph it is, or is part of
};
// Runs a graph to its end. `state` is what it starts with (that of `from`, when it goes on) and,
// when it succeeded, what it ended with; when it failed, what the failing step started with.
// `steps` counts completed steps. `delta`, when given, collects what was written. (runner.cc)
std::expected<void, Failure> RunGraph(RunContext& context, const GraphVisit& visit,
                                      nodes::State& state, int& steps, Update* delta);

// A failure for what an interrupt stopped.
Failure InterruptFailure(Interrupt::Reason reason);

}  // namespace caisson::graph
