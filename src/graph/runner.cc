// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "errors/graph.h"
#include "graph/context.h"

namespace caisson::graph {
namespace {

using VisitOutcome = std::optional<std::expected<VisitResult, Failure>>;

class Runner {
 public:
  Runner(RunContext& context, const PlannedGraph& graph, const std::string& graph_path,
         nodes::State& state, int& steps, Update* delta)
      : context_(context),
        graph_(graph),
        graph_path_(graph_path),
        state_(state),
        steps_(steps),
        delta_(delta),
        current_(graph.first_step),
        marks_(graph.nodes.size(), 0) {}
  // What the graph's state has grown by is no longer held when the graph has ended.
  ~Runner() { context_.budget.Change(-growth_); }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  std::expected<void, Failure> Run() {
    const int limit = context_.config.recursion_limit.value_or(kDefaultRecursionLimit);
    while (!current_.empty()) {
      if (auto ended = Step(); !ended) {
        ended.error().error.step = steps_ + 1;
        return ended;
      }
      ++steps_;
      // As in the peer, a run needs one step more than it takes, even when nothing is left to do.
      if (steps_ >= limit) return std::unexpected(RecursionFailure(limit));
    }
    return {};
  }

 private:
  std::expected<void, Failure> Step() {
    const Interrupt::Reason reason = context_.interrupt.Check();
    if (reason != Interrupt::Reason::kNone) return std::unexpected(InterruptFailure(reason));
    EmitStep();
    outcomes_.assign(current_.size(), std::nullopt);
    VisitAll();
    if (auto failure = TakeFailure()) return std::unexpected(*std::move(failure));
    if (auto applied = ApplyAll(); !applied) return applied;
    FindNext();
    return {};
  }

  void EmitStep() {
    if (!context_.emitter.active()) return;
    std::vector<std::string> ids;
    ids.reserve(current_.size());
    for (const NodeIndex index : current_) ids.push_back(graph_.nodes[index].id);
    Event event;
    event.kind = EventKind::kStepStarted;
    event.step = steps_ + 1;
    event.graph_path = graph_path_;
    event.nodes = &ids;
    context_.emitter.Emit(event);
  }

  void VisitAll() {
    std::vector<std::size_t> order;  // of parallel visits: those that may wait come first
    for (std::size_t i = 0; current_.size() > 1 && i < current_.size(); ++i) {
      if (graph_.nodes[current_[i]].blocks) order.push_back(i);
    }
    if (order.size() < 2) {
      for (std::size_t i = 0; i < current_.size(); ++i) {
        VisitOne(i);
        if (!outcomes_[i] || !*outcomes_[i]) return;
      }
      return;
    }
    for (std::size_t i = 0; i < current_.size(); ++i) {
      if (!graph_.nodes[current_[i]].blocks) order.push_back(i);
    }
    context_.pool.RunAll(order.size(), [&](std::size_t task) { VisitOne(order[task]); });
  }

  // Leaves the outcome empty when the run is to end.
  void VisitOne(std::size_t i) {
    if (context_.interrupt.Check() != Interrupt::Reason::kNone) return;
    const Place place{graph_path_, steps_ + 1};
    outcomes_[i].emplace(VisitNode(context_, graph_.nodes[current_[i]], state_, place));
  }

  // The failure of the step: of the first node by id that failed by itself.
  std::optional<Failure> TakeFailure() {
    std::optional<Failure> found;
    bool skipped = false;
    for (VisitOutcome& outcome : outcomes_) {
      if (!outcome) {
        skipped = true;
      } else if (!*outcome) {
        Failure& failure = outcome->error();
        if (!found || (found->is_consequence && !failure.is_consequence))
          found = std::move(failure);
      }
    }
    if (!found && skipped) found = InterruptFailure(context_.interrupt.Check());
    return found;
  }

  std::expected<void, Failure> ApplyAll() {
    writes_.clear();
    for (std::size_t i = 0; i < current_.size(); ++i) {
      writes_.push_back({graph_.nodes[current_[i]].id, &(*outcomes_[i])->update});
    }
    auto applied = ApplyStep(state_, writes_, context_.new_id, delta_);
    if (!applied) return std::unexpected(WriteFailure(std::move(applied).error()));
    return Settle(*applied);
  }

  // Counts what the state has become instead of what the nodes wrote. It may be more: messages get
  // their full form only now.
  std::expected<void, Failure> Settle(std::int64_t growth) {
    std::size_t heaviest = 0;
    for (std::size_t i = 0; i < current_.size(); ++i) {
      context_.budget.Change(-static_cast<std::int64_t>((*outcomes_[i])->weight));
      if ((*outcomes_[i])->weight > (*outcomes_[heaviest])->weight) heaviest = i;
    }
    auto taken = context_.budget.Take(growth > 0 ? static_cast<std::size_t>(growth) : 0);
    if (!taken) {
      return std::unexpected(WriteFailure({writes_[heaviest].node_id, std::move(taken).error()}));
    }
    if (growth < 0) context_.budget.Change(growth);
    growth_ += growth;
    return {};
  }

  Failure WriteFailure(WriteFault fault) {
    const auto node = std::ranges::lower_bound(graph_.nodes, fault.node_id, {}, &PlannedNode::id);
    Failure failure;
    failure.error.code = fault.status.code;
    failure.error.message = std::move(fault.status.message);
    failure.error.hint = std::move(fault.status.details);
    failure.error.node_id = fault.node_id;
    failure.error.node_path = graph_path_.empty() ? node->id : graph_path_ + "/" + node->id;
    failure.error.span = node->span;
    context_.interrupt.Raise(Interrupt::Reason::kFailed);
    return failure;
  }

  void FindNext() {
    next_.clear();
    const int mark = steps_ + 1;
    const auto add = [&](NodeIndex index) {
      if (std::exchange(marks_[index], mark) != mark) next_.push_back(index);
    };
    for (std::size_t i = 0; i < current_.size(); ++i) {
      for (const NodeIndex target : graph_.nodes[current_[i]].targets) add(target);
      if ((*outcomes_[i])->branch_target) add(*(*outcomes_[i])->branch_target);
    }
    std::ranges::sort(next_);
    std::swap(current_, next_);
  }

  Failure RecursionFailure(int limit) {
    context_.interrupt.Raise(Interrupt::Reason::kFailed);
    Failure failure;
    failure.error.code = errors::kGraphRecursionLimit;
    failure.error.message =
        "Recursion limit of " + std::to_string(limit) +
        " reached without hitting a stop condition. You can increase the limit by setting the "
        "`recursion_limit` config key.";
    failure.error.node_path = graph_path_;
    failure.error.step = steps_;
    return failure;
  }

  RunContext& context_;
  const PlannedGraph& graph_;
  const std::string& graph_path_;
  nodes::State& state_;
  int& steps_;
  Update* delta_;
  std::int64_t growth_ = 0;  // of the state's weight since the graph began
  std::vector<NodeIndex> current_;
  std::vector<NodeIndex> next_;
  std::vector<int> marks_;  // by node: the last step after which it was found to be next
  std::vector<VisitOutcome> outcomes_;
  std::vector<StepWrite> writes_;
};

}  // namespace

std::expected<void, Failure> RunGraph(RunContext& context, const PlannedGraph& graph,
                                      const std::string& graph_path, nodes::State& state,
                                      int& steps, Update* delta) {
  return Runner(context, graph, graph_path, state, steps, delta).Run();
}

}  // namespace caisson::graph
