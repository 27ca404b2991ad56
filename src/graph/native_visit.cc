// SPDX-License-Identifier: Apache-2.0
#include "errors/graph.h"
#include "errors/nodes.h"
#include "errors/outbound.h"
#include "graph/context.h"
#include "graph/delta_redaction.h"
#include "graph/finite.h"
#include "graph/hosted.h"
#include "graph/redacted_stores.h"
#include "graph/redaction.h"
#include "graph/tool_visit.h"
#include "graph/visit_network.h"
#include "json/truth.h"
#include "nodes/python_text.h"
#include "workflow/registry.h"

namespace caisson::graph {
namespace {

Scope ScopeOf(RunContext& context, CredentialResolver* credentials, std::string_view name,
              const nodes::State& state, std::size_t& text_made) {
  return {state, credentials, name, &context.warn, &text_made};
}

class VisitHost final : public nodes::Host {
 public:
  VisitHost(RunContext& context, VisitScope& visit, const NativePart& native,
            const std::string& name, const nodes::State& state, const SecretKeeper& secrets)
      : context_(context),
        visit_(visit),
        native_(native),
        name_(name),
        state_(state),
        secrets_(secrets),
        blobs_(context.services.blobs, secrets),
        items_(context.services.items, secrets),
        deltas_(secrets,
                [this](nodes::DeltaKind kind, const json::Value& data) { Show(kind, data); }),
        network_(context.services.network, visit.interrupt, context.services.stop) {}
  // What its steps gave has gone, or is part of the node's own result and counted there.
  ~VisitHost() override {
    deltas_.Finish();
    context_.budget.Change(-static_cast<std::int64_t>(held_));
  }
  VisitHost(const VisitHost&) = delete;
  VisitHost& operator=(const VisitHost&) = delete;

  Result<void> Sleep(std::chrono::nanoseconds duration) override {
    return visit_.interrupt.Sleep(duration);
  }
  void Log(nodes::LogLevel level, std::string_view message) override {
    context_.Log(level, secrets_.Redact(std::string(message)));
  }
  Result<json::Value> Ask(json::Value question) override;
  Result<http::Outbound*> Network() override {
    if (network_.exists()) return &network_;
    return Fail(errors::kOutboundNoNetwork,
                "the node sends requests, but this run has no network for its nodes");
  }
  Result<nodes::Blobs*> BlobStore() override {
    if (context_.services.blobs != nullptr) return &blobs_;
    return Fail(errors::kNodesNoBlobs,
                "the node stores a file, but this run has no store for files");
  }
  Result<nodes::Items*> ItemStore() override {
    if (context_.services.items != nullptr) return &items_;
    return Fail(errors::kNodesNoItems, "the node uses the long-term store, but this run has none");
  }
  std::size_t StepCount() const override {
    const json::Value& steps = native_.steps.raw();
    return steps.is_array() ? steps.as_array().size() : 0;
  }
  Result<nodes::StepResult> RunStep(std::size_t index, const nodes::State& state) override;
  std::span<const nodes::ToolInfo> Tools() const override {
    if (native_.tools == nullptr) return {};
    return native_.tools->infos;
  }
  Result<std::vector<nodes::ToolOutcome>> RunTools(std::span<const nodes::ToolRun> runs) override;
  Result<json::Value> Fill(const std::string& text, const nodes::State& state) override {
    std::size_t text_made = 0;
    const Scope scope{state, nullptr, name_, nullptr, &text_made};
    return Template::Parse(text, Credentials::kPlainText).Resolve(scope);
  }
  void Stream(nodes::DeltaKind kind, json::Value data) override;
  Result<void> CountTokens(std::int64_t input, std::int64_t output) override {
    visit_.tokens += input + output;
    return context_.meter.CountTokens(input + output);
  }

 private:
  RunContext& context_;
  VisitScope& visit_;
  const NativePart& native_;
  const std::string& name_;
  const nodes::State& state_;
  const SecretKeeper& secrets_;
  RedactedBlobs blobs_;
  RedactedItems items_;
  DeltaRedaction deltas_;
  VisitNetwork network_;
  std::size_t held_ = 0;  // the weight of what the steps gave

  void Show(nodes::DeltaKind kind, const json::Value& data);
  Result<nodes::StepResult> RunHostedStepAt(std::size_t index, const json::Value& step,
                                            const nodes::State& state);
  Result<nodes::StepResult> Keep(std::string name, const json::Value& given, Result<Update> update);
};

// Whether the node host runs the step.
bool IsHosted(const RunContext& context, const json::Value& step) {
  const json::Value* type = step.Find("type");
  return type != nullptr && type->is_string() && context.services.host != nullptr &&
         context.table.Find(type->as_string()) == nullptr &&
         context.services.host->Find(type->as_string()) != nullptr;
}

Result<const nodes::NodeType*> StepType(const RunContext& context, const json::Value& step) {
  const json::Value* type = step.Find("type");
  if (type == nullptr || !type->is_string() || type->as_string().empty()) {
    return nodes::NodeFailed("Each step must define a non-empty type: " + nodes::PyRepr(step));
  }
  const nodes::NodeType* native = context.table.Find(type->as_string());
  if (native != nullptr) return native;
  if (workflow::FindNodeType(type->as_string()) != nullptr) {
    return Fail(errors::kGraphNotNative,
                "node type '" + type->as_string() + "' of a sub-workflow cannot run here yet");
  }
  return nodes::NodeFailed("Unknown node type " + nodes::PyReprText(type->as_string()) +
                           " in sub-workflow");
}

// What a step is called: its `name`, else its type.
std::string StepName(const json::Value& step) {
  const json::Value* name = step.Find("name");
  return nodes::PyStr(name != nullptr && json::Truth(*name) ? *name : *step.Find("type"));
}

// The step as a node. Placeholders that are still open stay so.
Result<NativePart> PlanStep(const nodes::NodeType& type, const Template& step,
                            const std::string& name, std::size_t index) {
  const std::string path = "$.config.steps[" + std::to_string(index) + "]";
  auto values = nodes::ValidateConfig(type, step.raw().as_object(), path);
  if (!values) {
    return Fail(errors::kNodesConfig, "Failed to construct node '" + name + "' of type '" +
                                          std::string(type.name) + "': " + values.error().message);
  }
  NativePart part;
  part.type = &type;
  for (std::size_t i = 0; i < values->size(); ++i) {
    Template given = step.Member(type.fields[i].name);
    Template field = given.is_static() ? Template::Static((*values)[i]) : std::move(given);
    if (type.fields[i].kind == nodes::FieldKind::kSteps) {
      part.steps = std::move(field);
      part.fields.emplace_back();
    } else if (type.fields[i].kind == nodes::FieldKind::kTools) {
      if (json::Truth(field.raw())) {
        return Fail(errors::kNodesConfig, path + "." + std::string(type.fields[i].name) +
                                              ": an agent within a sub-workflow cannot have "
                                              "tools; make it a node of the graph");
      }
      part.fields.emplace_back();
    } else {
      part.fields.push_back(std::move(field));
    }
  }
  return part;
}

Result<json::Value> VisitHost::Ask(json::Value question) {
  Dialogue& dialogue = visit_.dialogue;
  if (dialogue.answers != nullptr && dialogue.heard < dialogue.answers->size()) {
    return (*dialogue.answers)[dialogue.heard++];
  }
  if (visit_.place.tool != nullptr) {
    return Fail(errors::kGraphNoJournal,
                "the node asks a person from within a tool of an agent, which cannot go on later; "
                "ask before or after the agent");
  }
  if (!context_.emitter.records()) {
    return Fail(errors::kGraphNoJournal,
                "the node asks a person, but the run is not recorded, so that it could not be "
                "resumed with an answer");
  }
  CAISSON_TRY(CheckRecordable(question));
  dialogue.question = secrets_.Redact(std::move(question));
  return Fail(errors::kGraphInterrupted, "the node waits for an answer");
}

void VisitHost::Stream(nodes::DeltaKind kind, json::Value data) {
  if (context_.services.deltas) deltas_.Take(kind, std::move(data));
}

void VisitHost::Show(nodes::DeltaKind kind, const json::Value& data) {
  context_.emitter.Between([&](std::uint64_t after) {
    context_.services.deltas({kind, after, context_.run_id, visit_.place.graph_path, name_, &data});
  });
}

Result<std::vector<nodes::ToolOutcome>> VisitHost::RunTools(std::span<const nodes::ToolRun> runs) {
  if (runs.empty()) return std::vector<nodes::ToolOutcome>();
  const Agent agent{visit_.place.graph_path, name_, state_};
  const auto tell = [this](json::Value progress) {
    Stream(nodes::DeltaKind::kToolProgress, std::move(progress));
  };
  CAISSON_ASSIGN(auto outcomes,
                 graph::RunTools(context_, visit_, *native_.tools, agent, runs, tell));
  for (const nodes::ToolOutcome& outcome : outcomes) {
    CAISSON_ASSIGN(const std::size_t weight, CheckBounds(outcome.output));
    CAISSON_TRY(context_.budget.Take(weight));
    held_ += weight;
  }
  return outcomes;
}

Result<nodes::StepResult> VisitHost::RunStep(std::size_t index, const nodes::State& state) {
  const Interrupt::Reason reason = visit_.interrupt.Check();
  if (reason != Interrupt::Reason::kNone) return Fail(InterruptStatus(reason));
  std::size_t text_made = 0;
  const Scope scope = ScopeOf(context_, context_.services.credentials, name_, state_, text_made);
  CAISSON_ASSIGN(const Template step, native_.steps.Item(index).Bind(scope));
  if (IsHosted(context_, step.raw())) return RunHostedStepAt(index, step.raw(), state);
  CAISSON_ASSIGN(const nodes::NodeType* type, StepType(context_, step.raw()));
  nodes::StepResult result{StepName(step.raw()), {}};
  CAISSON_ASSIGN(const NativePart part, PlanStep(*type, step, result.name, index));
  CAISSON_ASSIGN(json::Value payload, RunNative(context_, visit_, part, result.name, state));
  if (!type->writes_state) return Keep(result.name, payload, Promote(result.name, payload));
  CAISSON_ASSIGN(const std::size_t weight, CheckBounds(payload));
  CAISSON_TRY(context_.budget.Take(weight));
  held_ += weight;
  result.payload = std::move(payload);
  return result;
}

// What the step stored under its own name, counted as held.
Result<nodes::StepResult> VisitHost::Keep(std::string name, const json::Value& given,
                                          Result<Update> update) {
  CAISSON_ASSIGN(const std::size_t weight, CheckBounds(given));
  CAISSON_TRY(context_.budget.Take(weight));
  held_ += weight;
  if (!update) return Fail(std::move(update).error());
  nodes::StepResult result{std::move(name), {}};
  const json::Value* entry = update->Find(nodes::StateField::kNodeResults)->Find(result.name);
  if (entry != nullptr) result.payload = *entry;
  return result;
}

// The step's own text, as its templates are resolved by text.
Result<nodes::StepResult> VisitHost::RunHostedStepAt(std::size_t index, const json::Value& step,
                                                     const nodes::State& state) {
  const std::string name = StepName(step);
  CAISSON_ASSIGN(const json::Value given,
                 RunHostedStep(context_, visit_.interrupt, step.Find("type")->as_string(), name,
                               native_.steps.Item(index).raw(), state_, state));
  return Keep(name, given, UpdateOf(given));
}

// An array. Bounded here, and not only the result: a node may walk what it is given.
Result<json::Value> ResolveFields(const NativePart& native, const Scope& scope) {
  json::Array fields;
  fields.reserve(native.fields.size());
  for (const Template& field : native.fields) {
    if (field.is_static()) {
      fields.push_back(field.raw());
    } else {
      CAISSON_ASSIGN(json::Value value, field.Resolve(scope));
      fields.push_back(std::move(value));
    }
  }
  json::Value all(std::move(fields));
  CAISSON_TRY(CheckBounds(all));
  return all;
}

}  // namespace

Result<json::Value> RunNative(RunContext& context, VisitScope& visit, const NativePart& native,
                              const std::string& name, const nodes::State& state) {
  SecretKeeper secrets(context.services.credentials);
  std::size_t text_made = 0;
  const Scope scope = ScopeOf(context, secrets.resolver(), name, state, text_made);
  CAISSON_ASSIGN(const json::Value fields, ResolveFields(native, scope));
  VisitHost host(context, visit, native, name, state, secrets);
  Result<json::Value> result = native.type->run({name, fields.as_array(), state, host});
  if (result) return secrets.Redact(*std::move(result));
  Status failure = std::move(result).error();
  failure.message = secrets.Redact(std::move(failure.message));
  failure.details = secrets.Redact(std::move(failure.details));
  return Fail(std::move(failure));
}

}  // namespace caisson::graph
