// SPDX-License-Identifier: Apache-2.0
#include "graph/hosted.h"

#include <algorithm>
#include <utility>

#include "errors/graph.h"
#include "errors/host.h"
#include "errors/nodes.h"
#include "graph/redaction.h"
#include "json/reader.h"
#include "workflow/registry.h"

namespace caisson::graph {
namespace {

// The texts of `value` that hold something to resolve, each once.
void CollectTexts(const json::Value& value, std::vector<Template>& texts) {
  if (value.is_array()) {
    for (const json::Value& item : value.as_array()) CollectTexts(item, texts);
  } else if (value.is_object()) {
    for (const auto& [key, member] : value.as_object()) CollectTexts(member, texts);
  } else if (value.is_string()) {
    Template parsed = Template::Parse(value, Credentials::kResolve);
    if (parsed.is_static()) return;
    const bool is_known =
        std::ranges::any_of(texts, [&](const Template& text) { return text.raw() == value; });
    if (!is_known) texts.push_back(std::move(parsed));
  }
}

// The defaults of fields that the configuration does not have may be placeholders, too.
void CollectDefaults(std::string_view type, const json::Object& config,
                     std::vector<Template>& texts) {
  const workflow::NodeType* known = workflow::FindNodeType(type);
  if (known == nullptr) return;
  for (const workflow::NodeField& field : known->fields) {
    if (field.default_json.empty() || config.Contains(field.name)) continue;
    if (const auto value = json::Read(field.default_json)) CollectTexts(*value, texts);
  }
}

bool HasWorkflowTool(const json::Value& value) {
  if (value.is_array()) return std::ranges::any_of(value.as_array(), HasWorkflowTool);
  if (!value.is_object()) return false;
  const json::Value* kind = value.Find(workflow::kKindMarker);
  if (kind != nullptr && *kind == json::Value("workflow_tool")) return true;
  return std::ranges::any_of(value.as_object(),
                             [](const auto& member) { return HasWorkflowTool(member.second); });
}

HostedPart MakePart(std::string type, json::Value config) {
  HostedPart part;
  part.type = std::move(type);
  part.config = std::move(config);
  CollectTexts(part.config, part.texts);
  CollectDefaults(part.type, part.config.as_object(), part.texts);
  return part;
}

class NodeWaiter final : public host::Waiter {
 public:
  NodeWaiter(RunContext& context, Interrupt& interrupt, const SecretKeeper& secrets)
      : context_(context), interrupt_(interrupt), secrets_(secrets) {}
  Result<void> Check() override {
    const Interrupt::Reason reason = interrupt_.Check();
    if (reason == Interrupt::Reason::kNone) return {};
    return Fail(InterruptStatus(reason));
  }
  void Log(nodes::LogLevel level, std::string_view message) override {
    context_.Log(level, secrets_.Redact(std::string(message)));
  }

 private:
  RunContext& context_;
  Interrupt& interrupt_;
  const SecretKeeper& secrets_;
};

json::Value RunConfigOf(const RunContext& context) {
  const RunConfig& config = context.config;
  json::Object object{{"configurable", context.guest_config},
                      {"tags", json::Array(config.tags.begin(), config.tags.end())},
                      {"metadata", config.metadata},
                      {"run_name", config.run_name ? json::Value(*config.run_name) : nullptr}};
  if (config.recursion_limit) object.Set("recursion_limit", *config.recursion_limit);
  return object;
}

// What each text yields. `outer` (may be null) is asked before `scope`.
Result<json::Object> ResolveTexts(const HostedPart& part, const Scope& scope, const Scope* outer) {
  json::Object values;
  for (const Template& text : part.texts) {
    Template open = text;
    if (outer != nullptr) {
      CAISSON_ASSIGN(open, text.Bind(*outer));
    }
    CAISSON_ASSIGN(json::Value value, open.Resolve(scope));
    values.Set(text.raw().as_string(), std::move(value));
  }
  CAISSON_TRY(CheckBounds(json::Value(values)));
  return values;
}

struct Visit {
  RunContext& context;
  Interrupt& interrupt;
  const std::string& name;
  const nodes::State& state;
  const nodes::State* outer;  // of a step
};

host::Failure Redacted(host::Failure failure, const SecretKeeper& secrets) {
  failure.status.message = secrets.Redact(std::move(failure.status.message));
  failure.status.details = secrets.Redact(std::move(failure.status.details));
  failure.error_type = secrets.Redact(std::move(failure.error_type));
  return failure;
}

// The names of fields, and the node's own, stay: a short secret may be a part of them.
json::Value RedactedUpdate(const json::Value& update, const std::string& name,
                           const SecretKeeper& secrets) {
  if (!update.is_object()) return secrets.Redact(update);
  json::Object redacted;
  for (const auto& [field, value] : update.as_object()) {
    if (field != "node_results" || !value.is_object()) {
      redacted.Set(field, secrets.Redact(value));
      continue;
    }
    json::Object entries;
    for (const auto& [id, entry] : value.as_object()) {
      entries.Set(id == name ? id : secrets.Redact(id), secrets.Redact(entry));
    }
    redacted.Set(field, std::move(entries));
  }
  return redacted;
}

std::expected<json::Value, host::Failure> RunPart(const Visit& visit, const HostedPart& part,
                                                  const std::string& instance) {
  RunContext& context = visit.context;
  if (context.services.host == nullptr) {
    return std::unexpected(host::Failure{Status{.code = errors::kGraphNotNative,
                                                .message = "the node's type '" + part.type +
                                                           "' needs a node host, but the run has "
                                                           "none (caisson run --node-host)"}});
  }
  SecretKeeper secrets(context.services.credentials);
  std::size_t text_made = 0;
  const auto scope_in = [&](const nodes::State& state) {
    return Scope{state, secrets.resolver(), visit.name, &context.warn, &text_made};
  };
  const Scope scope = scope_in(visit.state);
  const Scope outer = scope_in(visit.outer != nullptr ? *visit.outer : visit.state);
  auto values = ResolveTexts(part, scope, visit.outer != nullptr ? &outer : nullptr);
  if (!values) return std::unexpected(host::Failure{std::move(values).error()});
  const host::Call call{.type = part.type,
                        .node = visit.name,
                        .instance = instance,
                        .config = part.config,
                        .values = *std::move(values),
                        .state = visit.state.ToJson(),
                        .run_config = RunConfigOf(context),
                        .secrets = secrets.secrets()};
  NodeWaiter waiter(context, visit.interrupt, secrets);
  auto given = context.services.host->Run(call, waiter);
  if (!given) return std::unexpected(Redacted(std::move(given).error(), secrets));
  return RedactedUpdate(*given, visit.name, secrets);
}

}  // namespace

Result<HostedPart> PlanHosted(host::Provider& provider, const workflow::BuiltinNode& node) {
  json::Value config(node.config);
  if (HasWorkflowTool(config)) {
    return Fail(errors::kGraphNotNative, "node '" + node.id + "' of type '" + node.type +
                                             "' has workflow tools, which a node of the node host "
                                             "cannot have; use an agent node that is native");
  }
  HostedPart part = MakePart(node.type, std::move(config));
  auto checked = provider.Check(part.type, node.id, part.config);
  if (checked) return part;
  if (checked.error().code != errors::kNodesConfig) return Fail(std::move(checked).error());
  return Fail(errors::kNodesConfig, "Failed to construct node '" + node.id + "' of type '" +
                                        node.type + "': " + checked.error().message);
}

std::expected<json::Value, host::Failure> RunHosted(RunContext& context, Interrupt& interrupt,
                                                    const PlannedNode& node,
                                                    const std::string& instance,
                                                    const nodes::State& state) {
  return RunPart({context, interrupt, node.id, state, nullptr}, *node.hosted,
                 context.run_id + "/" + instance);
}

Result<json::Value> RunHostedStep(RunContext& context, Interrupt& interrupt, std::string_view type,
                                  const std::string& name, const json::Value& step,
                                  const nodes::State& outer, const nodes::State& state) {
  json::Object config = step.as_object();
  config.Erase("type");
  config.Erase("name");
  auto given = RunPart({context, interrupt, name, state, &outer},
                       MakePart(std::string(type), std::move(config)), "");
  if (!given) return Fail(std::move(given).error().status);
  return *std::move(given);
}

Result<Update> UpdateOf(const json::Value& value) {
  if (!value.is_object()) {
    return Fail(errors::kHostProtocol,
                "the node host gave no object of state fields as the result of a node");
  }
  Update update;
  update.Set(nodes::StateField::kNodeResults, json::Object());
  for (const auto& [key, member] : value.as_object()) {
    const auto field = nodes::FindStateField(key);
    if (!field) continue;
    if (*field == nodes::StateField::kNodeResults && !member.is_object()) {
      return Fail(errors::kGraphNodeFailed, "TaskNode node_results state update must be a mapping");
    }
    update.Set(*field, member);
  }
  return update;
}

}  // namespace caisson::graph
