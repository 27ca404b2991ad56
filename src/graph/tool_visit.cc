// SPDX-License-Identifier: Apache-2.0
#include "graph/tool_visit.h"

#include <atomic>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "errors/internal.h"
#include "nodes/python_number.h"
#include "nodes/python_text.h"

namespace caisson::graph {
namespace {

// Of the run's configuration, what a tool's graph sees: nothing of the engine's own.
json::Value ToolConfigurable(const nodes::State& state) {
  json::Object kept;
  const json::Value* config = state.Find(nodes::StateField::kConfig);
  const json::Value* given = config == nullptr ? nullptr : config->Find("configurable");
  if (given != nullptr && given->is_object()) {
    for (const auto& [key, value] : given->as_object()) {
      const bool is_hidden = key.starts_with("__") || key == "attachment_resolver" ||
                             key == "attachment_scope" || key == "attachment_uploader";
      if (!is_hidden) kept.Set(key, value);
    }
  }
  const auto add = [&](const char* key, nodes::StateField field) {
    const json::Value* value = state.Find(field);
    if (value == nullptr || kept.Contains(key)) return;
    const bool is_id = field == nodes::StateField::kWorkspaceId;
    if (is_id && (!value->is_string() || nodes::Strip(value->as_string()).empty())) return;
    if (!is_id && !value->is_object()) return;
    kept.Set(key, is_id ? json::Value(nodes::Strip(value->as_string())) : *value);
  };
  add("workspace_id", nodes::StateField::kWorkspaceId);
  add("inputs", nodes::StateField::kInputs);
  return kept;
}

nodes::State ToolState(const nodes::State& outer, const PlannedTool& tool,
                       const json::Object& arguments) {
  json::Object inputs = arguments;
  if (tool.is_bare) {
    inputs = {};
    if (const json::Value* kwargs = arguments.Find("kwargs")) inputs.Set("kwargs", *kwargs);
  }
  nodes::State state;
  state.Set(nodes::StateField::kMessages, json::Array());
  state.Set(nodes::StateField::kInputs, std::move(inputs));
  state.Set(nodes::StateField::kNodeResults, json::Object());
  json::Value configurable = ToolConfigurable(outer);
  if (const json::Value* id = configurable.Find("workspace_id"); id != nullptr) {
    state.Set(nodes::StateField::kWorkspaceId, *id);
  }
  state.Set(nodes::StateField::kConfig, json::Object{{"configurable", std::move(configurable)}});
  return state;
}

// Takes from the run's budget what a value weighs, for as long as this lives.
class Hold {
 public:
  explicit Hold(Budget& budget) : budget_(budget) {}
  ~Hold() { budget_.Change(-static_cast<std::int64_t>(held_)); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  Result<void> Take(std::size_t weight) {
    CAISSON_TRY(budget_.Take(weight));
    held_ += weight;
    return {};
  }

 private:
  Budget& budget_;
  std::size_t held_ = 0;
};

// A failure within a tool, as the agent fails with it.
Status FailureOf(Failure failure, const std::string& tool) {
  RunError& error = failure.error;
  Status status{error.code, std::move(error.message), {}, std::move(error.hint)};
  if (failure.status != RunStatus::kFailed || failure.is_consequence) return status;
  status.message = "tool '" + tool + "'" +
                   (error.node_id.empty() ? "" : ", node '" + error.node_id + "'") + ": " +
                   status.message;
  if (!error.guest_output.empty()) {
    status.details += (status.details.empty() ? "" : "\n") + error.guest_output;
  }
  return status;
}

class ToolBatch {
 public:
  ToolBatch(RunContext& context, VisitScope& visit, const Toolbox& box, const Agent& agent,
            const std::function<void(json::Value)>& tell)
      : context_(context),
        visit_(visit),
        box_(box),
        agent_(agent),
        tell_(tell),
        interrupt_(visit.interrupt) {}

  Result<std::vector<nodes::ToolOutcome>> Run(std::span<const nodes::ToolRun> runs) {
    std::vector<std::optional<Result<nodes::ToolOutcome>>> results(runs.size());
    const auto run_one = [&](std::size_t i) {
      results[i].emplace(Guarded(runs[i]));
      if (!*results[i]) interrupt_.Raise(Interrupt::Reason::kFailed);
    };
    if (runs.size() == 1) {
      run_one(0);
    } else if (!runs.empty()) {
      context_.pool.RunAll(runs.size(), run_one);
    }
    visit_.tokens += tokens_.load();
    std::vector<nodes::ToolOutcome> outcomes;
    const Status* failure = nullptr;
    for (auto& result : results) {
      if (*result) {
        outcomes.push_back(**std::move(result));
      } else if (failure == nullptr || IsConsequence(*failure)) {
        failure = &result->error();
      }
    }
    if (failure != nullptr) return Fail(*failure);
    return outcomes;
  }

 private:
  static bool IsConsequence(const Status& status) {
    return status.code == InterruptStatus(Interrupt::Reason::kFailed).code;
  }

  // The run's threads must not be reached by exceptions.
  Result<nodes::ToolOutcome> Guarded(const nodes::ToolRun& run) {
    try {
      return One(run);
    } catch (const std::exception& error) {
      return Fail(errors::kInternalFailed, std::string("the tool failed: ") + error.what());
    }
  }

  Result<nodes::ToolOutcome> One(const nodes::ToolRun& run) {
    const Interrupt::Reason reason = interrupt_.Check();
    if (reason != Interrupt::Reason::kNone) return Fail(InterruptStatus(reason));
    const PlannedTool& tool = box_.tools[run.tool];
    nodes::ToolOutcome outcome;
    const auto verdict = tool.schema.Check(json::Value(run.arguments));
    // No verdict is a refusal, too.
    outcome.misfit = verdict ? verdict->Text() : verdict.error().message;
    if (!outcome.misfit.empty()) {
      Tell(run, "refused", {{"reason", outcome.misfit}});
      return outcome;
    }
    Tell(run, "started", {});
    CAISSON_ASSIGN(outcome.output, RunGraphOf(run, tool));
    Tell(run, "finished", {});
    return outcome;
  }

  Result<json::Value> RunGraphOf(const nodes::ToolRun& run, const PlannedTool& tool) {
    const std::string& name = box_.infos[run.tool].name;
    Hold hold(context_.budget);
    nodes::State state = ToolState(agent_.state, tool, run.arguments);
    CAISSON_TRY(hold.Take(Weigh(state)));
    ToolScope scope{[&](const Event& event) { TellVisit(run, event); }, &tokens_};
    const std::string path = ToolPath(agent_.graph_path, agent_.node_id, name);
    int steps = 0;
    auto ran =
        RunGraph(context_, {*tool.graph, path, interrupt_, nullptr, &scope}, state, steps, nullptr);
    if (!ran) return Fail(FailureOf(std::move(ran).error(), name));
    return SelectOutput(state.ToJson(), tool, name);
  }

  void TellVisit(const nodes::ToolRun& run, const Event& event) {
    json::Object more{{"node", event.node_id}, {"graph", event.graph_path}};
    if (event.kind == EventKind::kNodeFinished) Tell(run, "node_finished", std::move(more));
    if (event.kind == EventKind::kNodeError) Tell(run, "node_error", std::move(more));
  }

  void Tell(const nodes::ToolRun& run, const char* status, json::Object more) {
    if (!tell_) return;
    json::Object progress{
        {"tool", box_.infos[run.tool].name}, {"call_id", run.call_id}, {"status", status}};
    for (const auto& [key, value] : more) progress.Set(key, value);
    tell_(std::move(progress));
  }

  RunContext& context_;
  VisitScope& visit_;
  const Toolbox& box_;
  const Agent& agent_;
  const std::function<void(json::Value)>& tell_;
  Interrupt interrupt_;  // of these tools
  std::atomic<std::int64_t> tokens_{0};
};

std::unexpected<Status> BadPath(const PlannedTool& tool, const std::string& name,
                                const std::string& what) {
  return nodes::NodeFailed("Workflow tool '" + name + "' output_path '" + tool.output_path + "' " +
                           what);
}

Result<const json::Value*> Item(const json::Array& items, const std::string& segment,
                                const PlannedTool& tool, const std::string& name) {
  const auto digits = nodes::ParseInt(segment);
  if (!digits) return BadPath(tool, name, "encountered a list and requires an integer segment.");
  const json::Value index = json::Value::Integer(*digits);
  const auto size = static_cast<std::int64_t>(items.size());
  if (!index.is_int() || index.as_int() >= size || index.as_int() < -size) {
    return BadPath(tool, name, "index " + *digits + " is out of range.");
  }
  return &items[static_cast<std::size_t>(index.as_int() + (index.as_int() < 0 ? size : 0))];
}

}  // namespace

Result<json::Value> SelectOutput(const json::Value& state, const PlannedTool& tool,
                                 const std::string& name) {
  const json::Value* at = &state;
  for (const std::string& segment : tool.segments) {
    if (at->is_array()) {
      CAISSON_ASSIGN(at, Item(at->as_array(), segment, tool, name));
    } else if (at->is_object()) {
      at = at->Find(segment);
      if (at == nullptr) return BadPath(tool, name, "could not resolve segment '" + segment + "'.");
    } else {
      return BadPath(tool, name, "cannot descend into " + std::string(nodes::PyType(*at)) + ".");
    }
  }
  return *at;
}

Result<std::vector<nodes::ToolOutcome>> RunTools(RunContext& context, VisitScope& visit,
                                                 const Toolbox& box, const Agent& agent,
                                                 std::span<const nodes::ToolRun> runs,
                                                 const std::function<void(json::Value)>& tell) {
  return ToolBatch(context, visit, box, agent, tell).Run(runs);
}

}  // namespace caisson::graph
