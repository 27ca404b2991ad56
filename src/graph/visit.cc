// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <utility>

#include "errors/graph.h"
#include "errors/internal.h"
#include "errors/isolate.h"
#include "graph/context.h"

namespace caisson::graph {
namespace {

std::string PathOf(const Place& place, const PlannedNode& node) {
  return place.graph_path.empty() ? node.id : place.graph_path + "/" + node.id;
}

// What is not known yet of a failure of `node` itself.
void Locate(Failure& failure, const PlannedNode& node, const Place& place) {
  failure.error.node_id = node.id;
  failure.error.node_path = PathOf(place, node);
  failure.error.span = node.span;
  failure.error.step = place.step;
}

Failure FromStatus(RunContext& context, Status status) {
  Failure failure;
  if (status.code == errors::kGraphTimedOut || status.code == errors::kGraphCancelled) {
    failure = InterruptFailure(context.interrupt.Check());
  }
  failure.error.code = status.code;
  failure.error.message = std::move(status.message);
  failure.error.hint = std::move(status.details);
  return failure;
}

Ending EndingOf(const Failure& failure) {
  if (failure.is_consequence || failure.status != RunStatus::kFailed) return Ending::kCancelled;
  return failure.error.code == errors::kInternalFailed ? Ending::kInternal : Ending::kError;
}

// One visit, from its first event to its last.
class Visitor {
 public:
  Visitor(RunContext& context, const PlannedNode& node, const nodes::State& state,
          const Place& place)
      : context_(context), node_(node), state_(state), place_(place) {}

  std::expected<VisitResult, Failure> Run() {
    Begin();
    std::expected<VisitResult, Failure> result = RunGuarded();
    if (!result && result.error().error.node_id.empty()) Locate(result.error(), node_, place_);
    if (!result) context_.interrupt.Raise(Interrupt::Reason::kFailed);
    End(result);
    return result;
  }

 private:
  void Begin() {
    context_.visits.fetch_add(1, std::memory_order_relaxed);
    if (context_.services.metrics != nullptr) {
      context_.services.metrics->Invoked(node_.type, RuntimeName());
    }
    if (!context_.emitter.active()) return;
    start_ = Clock::now();
    context_.emitter.Emit(MakeEvent(EventKind::kNodeStarted));
  }

  void End(const std::expected<VisitResult, Failure>& result) {
    if (context_.services.metrics != nullptr) {
      const Ending ending = result ? Ending::kSuccess : ending_.value_or(EndingOf(result.error()));
      context_.services.metrics->Ended(node_.type, RuntimeName(), ending);
    }
    if (!context_.emitter.active()) return;
    Event event = MakeEvent(result ? EventKind::kNodeFinished : EventKind::kNodeError);
    event.duration = Clock::now() - start_;
    const json::Value data = result ? result->update.ToJson() : result.error().error.ToJson();
    event.data = &data;
    context_.emitter.Emit(event);
  }

  Event MakeEvent(EventKind kind) const {
    Event event;
    event.kind = kind;
    event.step = place_.step;
    event.graph_path = place_.graph_path;
    event.node_id = node_.id;
    event.node_type = node_.type;
    return event;
  }

  std::string_view RuntimeName() const {
    return node_.kind == PlannedNode::Kind::kCode
               ? workflow::CodeRuntimeName(context_.config.runtimes.Of(node_.id))
               : std::string_view("host");
  }

  // Exceptions of the standard library (out of memory) end the node, not the process.
  std::expected<VisitResult, Failure> RunGuarded() {
    try {
      return RunNode();
    } catch (const std::exception& error) {
      return std::unexpected(FromStatus(
          context_, {errors::kInternalFailed, std::string("the node failed: ") + error.what()}));
    }
  }

  std::expected<VisitResult, Failure> RunNode() {
    auto update = MakeUpdate();
    if (!update) return std::unexpected(std::move(update).error());
    VisitResult result{*std::move(update), weight_, std::nullopt};
    if (node_.branch == nullptr) return result;
    auto target = FollowBranch(*node_.branch, state_, result.update, context_.new_id);
    if (!target) return std::unexpected(FromStatus(context_, std::move(target).error()));
    if (*target != kEndIndex) result.branch_target = *target;
    return result;
  }

  std::expected<Update, Failure> MakeUpdate() {
    if (node_.kind == PlannedNode::Kind::kSubgraph) return RunSubgraph();
    auto result = node_.kind == PlannedNode::Kind::kCode ? RunCodeNode() : RunNativeNode();
    if (!result) return std::unexpected(std::move(result).error());
    const auto weight = CheckBounds(*result);
    if (!weight) return std::unexpected(FromStatus(context_, weight.error()));
    if (auto held = Hold(*weight + node_.id.size()); !held) return std::unexpected(held.error());
    auto update = Promote(node_.id, *std::move(result));
    if (!update) return std::unexpected(FromStatus(context_, std::move(update).error()));
    return *std::move(update);
  }

  std::expected<void, Failure> Hold(std::size_t weight) {
    auto taken = context_.budget.Take(weight);
    if (!taken) return std::unexpected(FromStatus(context_, std::move(taken).error()));
    weight_ = weight;
    return {};
  }

  std::expected<json::Value, Failure> RunNativeNode() {
    auto result = RunNative(context_, node_.native, node_.id, state_);
    if (!result) return std::unexpected(FromStatus(context_, std::move(result).error()));
    return *std::move(result);
  }

  std::expected<json::Value, Failure> RunCodeNode() {
    auto result = RunCode(context_, node_, state_);
    if (result) return *std::move(result);
    CodeFailure& code = result.error();
    ending_ = code.ending;
    if (code.timed_out && context_.interrupt.Check() == Interrupt::Reason::kTimedOut) {
      return std::unexpected(InterruptFailure(Interrupt::Reason::kTimedOut));
    }
    // Who cancels a run may take the workers away from under its calls.
    if (code.error.code == errors::kIsolateWorkerLost && context_.services.stop.stop_requested()) {
      ending_ = Ending::kCancelled;
      return std::unexpected(InterruptFailure(Interrupt::Reason::kCancelled));
    }
    Failure failure;
    failure.error = std::move(code.error);
    return std::unexpected(std::move(failure));
  }

  std::expected<Update, Failure> RunSubgraph() {
    nodes::State state = state_;
    Update delta;
    int steps = 0;
    auto ran = RunGraph(context_, *node_.graph, PathOf(place_, node_), state, steps, &delta);
    if (!ran) return std::unexpected(std::move(ran).error());
    if (auto held = Hold(Weigh(delta)); !held) return std::unexpected(held.error());
    return delta;
  }

  RunContext& context_;
  const PlannedNode& node_;
  const nodes::State& state_;
  const Place& place_;
  Clock::time_point start_;
  std::size_t weight_ = 0;        // of the update
  std::optional<Ending> ending_;  // of a code node that failed
};

}  // namespace

Failure InterruptFailure(Interrupt::Reason reason) {
  Failure failure;
  failure.is_consequence = reason == Interrupt::Reason::kFailed;
  failure.status =
      reason == Interrupt::Reason::kTimedOut ? RunStatus::kTimedOut : RunStatus::kCancelled;
  Status status = InterruptStatus(reason);
  failure.error.code = status.code;
  failure.error.message = std::move(status.message);
  return failure;
}

std::expected<VisitResult, Failure> VisitNode(RunContext& context, const PlannedNode& node,
                                              const nodes::State& state, const Place& place) {
  return Visitor(context, node, state, place).Run();
}

}  // namespace caisson::graph
