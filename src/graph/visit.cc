// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <random>
#include <utility>

#include "errors/graph.h"
#include "errors/internal.h"
#include "errors/isolate.h"
#include "graph/context.h"
#include "graph/finite.h"
#include "graph/hosted.h"

namespace caisson::graph {
namespace {

std::string PathOf(const Place& place, const PlannedNode& node) {
  return JoinPath(place.graph_path, node.id);
}

// What is not known yet of a failure of `node` itself.
void Locate(Failure& failure, const PlannedNode& node, const Place& place) {
  failure.error.node_id = node.id;
  failure.error.node_path = PathOf(place, node);
  failure.error.span = node.span;
  failure.error.step = place.step;
}

Failure FromStatus(Interrupt& interrupt, Status status) {
  Failure failure;
  if (status.code == errors::kGraphTimedOut || status.code == errors::kGraphCancelled) {
    failure = InterruptFailure(interrupt.Check());
  }
  if (status.code == errors::kGraphInterrupted) failure.status = RunStatus::kInterrupted;
  failure.error.code = status.code;
  failure.error.message = std::move(status.message);
  failure.error.hint = std::move(status.details);
  return failure;
}

Ending EndingOf(const Failure& failure) {
  if (failure.status == RunStatus::kInterrupted) return Ending::kInterrupted;
  if (failure.is_consequence || failure.status != RunStatus::kFailed) return Ending::kCancelled;
  return failure.error.code == errors::kInternalFailed ? Ending::kInternal : Ending::kError;
}

// In [0, 1), for waits that shall not all end at once.
double Random() {
  thread_local std::minstd_rand generator(std::random_device{}());
  return std::uniform_real_distribution<double>(0, 1)(generator);
}

std::optional<Clock::time_point> After(std::optional<std::chrono::milliseconds> duration) {
  if (!duration) return std::nullopt;
  return Clock::now() + *duration;
}

// One attempt, from its first event to its last.
class Visitor {
 public:
  Visitor(RunContext& context, const PlannedNode& node, const nodes::State& state,
          const Place& place, int attempt, std::optional<std::chrono::milliseconds> timeout)
      : context_(context),
        node_(node),
        state_(state),
        place_(place),
        attempt_(attempt),
        interrupt_(place.interrupt, After(timeout)),
        scope_{interrupt_, dialogue_, place} {
    if (attempt_ == 1) FindBefore();
  }

  // `retry` says whether, and after which wait, a failed attempt is followed by another.
  template <typename RetryAfter>
  std::expected<VisitResult, Failure> Run(RetryAfter retry) {
    Begin();
    std::expected<VisitResult, Failure> result = RunGuarded();
    if (!result && result.error().error.node_id.empty()) Locate(result.error(), node_, place_);
    if (!result) retry_ = retry(result.error());
    End(result);
    return result;
  }

  std::optional<std::chrono::milliseconds> retry() const { return retry_; }

 private:
  // What had been done in this visit when the run was last at it.
  void FindBefore() {
    if (place_.from == nullptr) return;
    if (const auto given = place_.from->answers.find(node_.id);
        given != place_.from->answers.end()) {
      dialogue_.answers = &given->second;
    }
    const auto inner = place_.from->inside.find(node_.id);
    if (inner != place_.from->inside.end()) inside_ = &inner->second;
  }

  void Begin() {
    if (context_.services.metrics != nullptr) {
      context_.services.metrics->Invoked(node_.type, RuntimeName());
    }
    start_ = Clock::now();
    if (!IsHeard()) return;
    Event event = MakeEvent(EventKind::kNodeStarted);
    event.continues = inside_ != nullptr;
    Emit(event);
  }

  void End(const std::expected<VisitResult, Failure>& result) {
    if (context_.services.metrics != nullptr) {
      const Ending ending = result ? Ending::kSuccess : ending_.value_or(EndingOf(result.error()));
      context_.services.metrics->Ended(node_.type, RuntimeName(), ending);
    }
    if (result) {
      EmitEnd(EventKind::kNodeFinished, result->update.ToJson());
    } else if (result.error().status != RunStatus::kInterrupted) {
      EmitEnd(EventKind::kNodeError, result.error().error.ToJson());
    } else if (dialogue_.question) {  // and not that of a node in its subgraph
      context_.AddQuestion({PathOf(place_, node_), *dialogue_.question});
      EmitEnd(EventKind::kNodeInterrupted, *dialogue_.question);
    }
  }

  void EmitEnd(EventKind kind, const json::Value& data) {
    if (place_.tool != nullptr) place_.tool->tokens->fetch_add(scope_.tokens);
    if (!IsHeard()) return;
    Event event = MakeEvent(kind);
    event.duration = Clock::now() - start_;
    event.retry = retry_;
    event.tokens = scope_.tokens;
    event.data = &data;
    Emit(event);
  }

  bool IsHeard() const { return place_.tool != nullptr || context_.emitter.active(); }
  void Emit(const Event& event) {
    if (place_.tool != nullptr) {
      place_.tool->tell(event);
    } else {
      context_.emitter.Emit(event);
    }
  }

  Event MakeEvent(EventKind kind) const {
    Event event;
    event.kind = kind;
    event.step = place_.step;
    event.graph_path = place_.graph_path;
    event.node_id = node_.id;
    event.node_type = node_.type;
    event.attempt = attempt_;
    return event;
  }

  std::string_view RuntimeName() const {
    if (node_.kind == PlannedNode::Kind::kHosted) return "node_host";
    return node_.kind == PlannedNode::Kind::kCode
               ? workflow::CodeRuntimeName(context_.config.runtimes.Of(node_.id))
               : std::string_view("host");
  }

  Failure FailureOf(Status status) { return FromStatus(interrupt_, std::move(status)); }

  // Exceptions of the standard library (out of memory) end the node, not the process.
  std::expected<VisitResult, Failure> RunGuarded() {
    try {
      return RunNode();
    } catch (const std::exception& error) {
      return std::unexpected(
          FailureOf({errors::kInternalFailed, std::string("the node failed: ") + error.what()}));
    }
  }

  std::expected<VisitResult, Failure> RunNode() {
    if (auto counted = context_.meter.CountVisit(); !counted) {
      return std::unexpected(FailureOf(std::move(counted).error()));
    }
    // Whoever looks at the run while the node is at work shall see it.
    if (node_.blocks && place_.tool == nullptr) {
      auto kept = context_.emitter.Commit();
      if (!kept) return std::unexpected(FailureOf(std::move(kept).error()));
    }
    auto update = MakeUpdate();
    if (!update) return std::unexpected(std::move(update).error());
    VisitResult result{*std::move(update), weight_, std::nullopt};
    if (node_.branch == nullptr) return result;
    auto target = FollowBranch(*node_.branch, state_, result.update, context_.new_id);
    if (!target) return std::unexpected(FailureOf(std::move(target).error()));
    if (*target != kEndIndex) result.branch_target = *target;
    return result;
  }

  std::expected<Update, Failure> MakeUpdate() {
    if (node_.kind == PlannedNode::Kind::kSubgraph) return RunSubgraph();
    auto result = RunOwnCode();
    if (!result) return std::unexpected(std::move(result).error());
    const auto weight = CheckBounds(*result);
    if (!weight) return std::unexpected(FailureOf(weight.error()));
    if (auto held = Hold(*weight + node_.id.size()); !held) return std::unexpected(held.error());
    auto update = Settle(*std::move(result));
    if (!update) return std::unexpected(FailureOf(std::move(update).error()));
    return *std::move(update);
  }

  Result<Update> UpdateFrom(json::Value result) const {
    if (node_.kind == PlannedNode::Kind::kHosted) return UpdateOf(result);
    if (node_.kind == PlannedNode::Kind::kNative && node_.native.type->writes_state) {
      return StateUpdate(std::move(result));
    }
    return Promote(node_.id, std::move(result));
  }

  // What is left to do afterwards depends on nothing but the update and the state.
  Result<Update> Settle(json::Value result) {
    if (context_.emitter.records()) CAISSON_TRY(CheckRecordable(result));
    CAISSON_ASSIGN(Update update, UpdateFrom(std::move(result)));
    if (const json::Value* messages = update.Find(nodes::StateField::kMessages)) {
      CAISSON_ASSIGN(json::Value normal, NormaliseMessages(*messages, context_.new_id));
      update.Set(nodes::StateField::kMessages, std::move(normal));
    }
    return update;
  }

  std::expected<void, Failure> Hold(std::size_t weight) {
    auto taken = context_.budget.Take(weight);
    if (!taken) return std::unexpected(FailureOf(std::move(taken).error()));
    weight_ = weight;
    return {};
  }

  std::expected<json::Value, Failure> RunOwnCode() {
    if (node_.kind == PlannedNode::Kind::kCode) return RunCodeNode();
    if (node_.kind == PlannedNode::Kind::kHosted) return RunHostedNode();
    return RunNativeNode();
  }

  std::expected<json::Value, Failure> RunHostedNode() {
    auto result = RunHosted(context_, interrupt_, node_, PathOf(place_, node_), state_);
    if (result) return *std::move(result);
    Failure failure = FailureOf(std::move(result.error().status));
    failure.error.error_type = std::move(result.error().error_type);
    return std::unexpected(std::move(failure));
  }

  std::expected<json::Value, Failure> RunNativeNode() {
    auto result = RunNative(context_, scope_, node_.native, node_.id, state_);
    if (!result) return std::unexpected(FailureOf(std::move(result).error()));
    return *std::move(result);
  }

  std::expected<json::Value, Failure> RunCodeNode() {
    auto result = RunCode(context_, interrupt_, node_, state_);
    auto counted = context_.meter.CountIsolate(Clock::now() - start_);
    if (result && !counted) return std::unexpected(FailureOf(std::move(counted).error()));
    if (result) return *std::move(result);
    CodeFailure& code = result.error();
    ending_ = code.ending;
    if (code.timed_out) {
      const Interrupt::Reason reason = interrupt_.Check();
      if (reason != Interrupt::Reason::kNone) return std::unexpected(InterruptFailure(reason));
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
    nodes::State state = inside_ != nullptr ? inside_->state : state_;
    Update delta;
    if (inside_ != nullptr) delta = inside_->delta;
    int steps = 0;
    const std::string path = PathOf(place_, node_);
    auto ran = RunGraph(context_, {*node_.graph, path, interrupt_, inside_, place_.tool}, state,
                        steps, &delta);
    if (!ran) return std::unexpected(std::move(ran).error());
    if (auto held = Hold(Weigh(delta)); !held) return std::unexpected(held.error());
    return delta;
  }

  RunContext& context_;
  const PlannedNode& node_;
  const nodes::State& state_;
  const Place& place_;
  const int attempt_;
  Interrupt interrupt_;
  Dialogue dialogue_;
  VisitScope scope_;
  const GraphProgress* inside_ = nullptr;  // of its subgraph
  Clock::time_point start_;
  std::size_t weight_ = 0;        // of the update
  std::optional<Ending> ending_;  // of a code node that failed
  std::optional<std::chrono::milliseconds> retry_;
};

bool MayRetry(const Failure& failure) {
  return failure.status == RunStatus::kFailed && !failure.is_consequence &&
         failure.error.code != errors::kGraphBudget;
}

// The wait before the next attempt; nullopt when there is none.
std::optional<std::chrono::milliseconds> RetryAfter(const Retry* retry, const Failure& failure,
                                                    int attempt) {
  if (retry == nullptr || attempt > retry->count || !MayRetry(failure) ||
      !IsRetried(*retry, failure.error.code)) {
    return std::nullopt;
  }
  return WaitBefore(*retry, attempt + 1, Random());
}

}  // namespace

Failure InterruptFailure(Interrupt::Reason reason) {
  Failure failure;
  failure.is_consequence = reason == Interrupt::Reason::kFailed;
  if (reason == Interrupt::Reason::kTimedOut) {
    failure.status = RunStatus::kTimedOut;
  } else if (reason != Interrupt::Reason::kNodeTimedOut) {
    failure.status = RunStatus::kCancelled;
  }
  Status status = InterruptStatus(reason);
  failure.error.code = status.code;
  failure.error.message = std::move(status.message);
  return failure;
}

std::expected<VisitResult, Failure> VisitNode(RunContext& context, const PlannedNode& node,
                                              const nodes::State& state, const Place& place) {
  const NodePolicies& policies = context.config.policies;
  const Retry* retry = nullptr;
  std::optional<std::chrono::milliseconds> timeout;
  if (!policies.empty()) {
    const std::string path = PathOf(place, node);
    retry = policies.RetryOf(path);
    timeout = policies.TimeoutOf(path);
  }
  for (int attempt = 1;; ++attempt) {
    Visitor visitor(context, node, state, place, attempt, timeout);
    auto result =
        visitor.Run([&](const Failure& failure) { return RetryAfter(retry, failure, attempt); });
    if (!result && visitor.retry()) {
      if (auto slept = place.interrupt.Sleep(*visitor.retry()); slept) continue;
      result = std::unexpected(InterruptFailure(place.interrupt.Check()));
      Locate(result.error(), node, place);
    }
    if (!result && result.error().status != RunStatus::kInterrupted) {
      place.interrupt.Raise(Interrupt::Reason::kFailed);
    }
    return result;
  }
}

}  // namespace caisson::graph
