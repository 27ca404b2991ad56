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
  Runner(RunContext& context, const GraphVisit& visit, nodes::State& state, int& steps,
         Update* delta)
      : context_(context),
        graph_(visit.graph),
        graph_path_(visit.path),
        interrupt_(visit.interrupt),
        state_(state),
        steps_(steps),
        delta_(delta),
        from_(visit.from != nullptr && visit.from->has_begun() ? visit.from : nullptr),
        tool_(visit.tool),
        current_(visit.graph.first_step),
        marks_(visit.graph.nodes.size(), 0) {}
  // What the graph's state has grown by is no longer held when the graph has ended.
  ~Runner() { context_.budget.Change(-growth_); }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  std::expected<void, Failure> Run() {
    const int limit = context_.config.recursion_limit.value_or(kDefaultRecursionLimit);
    if (from_ != nullptr) {
      if (auto found = FindPlace(); !found) return found;
    }
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
    const Interrupt::Reason reason = interrupt_.Check();
    if (reason != Interrupt::Reason::kNone) return std::unexpected(InterruptFailure(reason));
    outcomes_.assign(current_.size(), std::nullopt);
    if (from_ == nullptr) {
      EmitStep();
    } else if (auto restored = Restore(); !restored) {
      return restored;
    }
    VisitAll();
    from_ = nullptr;
    auto kept = context_.emitter.Commit();
    if (!kept) return std::unexpected(LostFailure(std::move(kept).error()));
    if (auto failure = TakeFailure()) return std::unexpected(*std::move(failure));
    if (auto applied = ApplyAll(); !applied) return applied;
    FindNext();
    return {};
  }

  // The step at which the run goes on.
  std::expected<void, Failure> FindPlace() {
    steps_ = from_->steps;
    current_.clear();
    for (const std::string& id : from_->current) {
      const auto node = std::ranges::lower_bound(graph_.nodes, id, {}, &PlannedNode::id);
      if (node == graph_.nodes.end() || node->id != id) {
        Failure failure;
        failure.error.code = errors::kGraphOtherWorkflow;
        failure.error.message = "the run was at the node '" + JoinPath(graph_path_, id) +
                                "', which the workflow does not have";
        return std::unexpected(std::move(failure));
      }
      current_.push_back(static_cast<NodeIndex>(node - graph_.nodes.begin()));
    }
    std::ranges::sort(current_);
    return {};
  }

  // What the step's nodes gave before.
  std::expected<void, Failure> Restore() {
    for (std::size_t i = 0; i < current_.size(); ++i) {
      const PlannedNode& node = graph_.nodes[current_[i]];
      const auto update = from_->finished.find(node.id);
      if (update == from_->finished.end()) continue;
      VisitResult result{update->second, Weigh(update->second), std::nullopt};
      if (auto taken = context_.budget.Take(result.weight); !taken) {
        return std::unexpected(WriteFailure({node.id, std::move(taken).error()}));
      }
      if (node.branch != nullptr) {
        auto target = FollowBranch(*node.branch, state_, result.update, context_.new_id);
        if (!target) return std::unexpected(WriteFailure({node.id, std::move(target).error()}));
        if (*target != kEndIndex) result.branch_target = *target;
      }
      outcomes_[i].emplace(std::move(result));
    }
    return {};
  }

  // The journal could not keep what happened.
  Failure LostFailure(Status status) {
    interrupt_.Raise(Interrupt::Reason::kFailed);
    Failure failure;
    failure.error.code = status.code;
    failure.error.message = "the run cannot be recorded: " + status.message;
    failure.error.hint = "it can be resumed from its last recorded step once that is mended";
    return failure;
  }

  void EmitStep() {
    if (tool_ != nullptr || !context_.emitter.active()) return;
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
        if (!outcomes_[i] || (!*outcomes_[i] && !IsInterrupted(*outcomes_[i]))) return;
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
    if (outcomes_[i] || interrupt_.Check() != Interrupt::Reason::kNone) return;
    const PlannedNode& node = graph_.nodes[current_[i]];
    const Place place{graph_path_, steps_ + 1, interrupt_, from_, tool_};
    outcomes_[i].emplace(VisitNode(context_, node, state_, place));
    // What took long, or changed the world, is safe before its siblings have ended. A failure is
    // noticed at the end of the step.
    if (node.blocks && current_.size() > 1) (void)context_.emitter.Commit();
  }

  static bool IsInterrupted(const std::expected<VisitResult, Failure>& outcome) {
    return !outcome && outcome.error().status == RunStatus::kInterrupted;
  }

  // The failure of the step: of the first node by id that failed by itself. A node that waits for
  // an answer ends the run only when none failed.
  std::optional<Failure> TakeFailure() {
    std::optional<Failure> found;
    std::optional<Failure> waiting;
    bool skipped = false;
    for (VisitOutcome& outcome : outcomes_) {
      if (!outcome) {
        skipped = true;
      } else if (IsInterrupted(*outcome)) {
        waiting = std::move(outcome->error());
      } else if (!*outcome) {
        Failure& failure = outcome->error();
        if (!found || (found->is_consequence && !failure.is_consequence))
          found = std::move(failure);
      }
    }
    if (!found && skipped) found = InterruptFailure(interrupt_.Check());
    return found ? std::move(found) : std::move(waiting);
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
    failure.error.node_path = JoinPath(graph_path_, node->id);
    failure.error.span = node->span;
    interrupt_.Raise(Interrupt::Reason::kFailed);
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
    interrupt_.Raise(Interrupt::Reason::kFailed);
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
  Interrupt interrupt_;  // of this graph's nodes
  nodes::State& state_;
  int& steps_;
  Update* delta_;
  const GraphProgress* from_;  // until its step is done
  ToolScope* const tool_;
  std::int64_t growth_ = 0;  // of the state's weight since the graph began
  std::vector<NodeIndex> current_;
  std::vector<NodeIndex> next_;
  std::vector<int> marks_;  // by node: the last step after which it was found to be next
  std::vector<VisitOutcome> outcomes_;
  std::vector<StepWrite> writes_;
};

}  // namespace

std::expected<void, Failure> RunGraph(RunContext& context, const GraphVisit& visit,
                                      nodes::State& state, int& steps, Update* delta) {
  return Runner(context, visit, state, steps, delta).Run();
}

}  // namespace caisson::graph
