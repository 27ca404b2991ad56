// SPDX-License-Identifier: Apache-2.0
#include "graph/run.h"

#include <algorithm>
#include <utility>

#include "errors/graph.h"
#include "graph/context.h"
#include "graph/tool_plan.h"

namespace caisson::graph {
namespace {

using nodes::StateField;

std::optional<Clock::time_point> DeadlineOf(const RunConfig& config) {
  if (!config.timeout) return std::nullopt;
  return Clock::now() + *config.timeout;
}

// The run's configurable values; the run is a thread of its own unless they say another one.
json::Object Configurable(const RunConfig& config, const std::string& run_id) {
  json::Object configurable = config.configurable;
  if (!configurable.Contains("thread_id")) configurable.Set("thread_id", run_id);
  return configurable;
}

json::Value GuestConfig(const RunConfig& config, const std::string& run_id) {
  json::Object visible;
  for (const auto& [key, value] : Configurable(config, run_id)) {
    if (!key.starts_with("__")) visible.Set(key, value);
  }
  return visible;
}

json::Value StateConfig(const RunConfig& config, const std::string& run_id) {
  json::Array tags(config.tags.begin(), config.tags.end());
  json::Object state{{"configurable", Configurable(config, run_id)},
                     {"tags", std::move(tags)},
                     {"metadata", config.metadata},
                     {"callbacks", config.callbacks},
                     {"run_name", config.run_name ? json::Value(*config.run_name) : nullptr}};
  if (config.recursion_limit) state.Set("recursion_limit", *config.recursion_limit);
  if (config.max_concurrency) state.Set("max_concurrency", *config.max_concurrency);
  return state;
}

Result<void> CheckRange(const std::optional<int>& value, int maximum, std::string_view what) {
  if (!value || (*value >= 1 && *value <= maximum)) return {};
  return Fail(errors::kGraphConfig, "the run configuration: " + std::string(what) +
                                        " must be from 1 to " + std::to_string(maximum));
}

Result<void> CheckRuntimes(const Plan& plan, const workflow::CodeRuntimes& runtimes,
                           const Services& services) {
  for (const auto& [id, runtime] : runtimes.nodes) {
    if (plan.code_nodes().contains(id)) continue;
    return Fail(errors::kGraphConfig, "the run configuration: a runtime is chosen for the node '" +
                                          id + "', but the workflow has no code node of that id");
  }
  for (const std::string& id : plan.code_nodes()) {
    const workflow::CodeRuntime runtime = runtimes.Of(id);
    if (services.Of(runtime) != nullptr) continue;
    return Fail(errors::kGraphNoRuntime, "the code node '" + id + "' runs in " +
                                             std::string(CodeRuntimeName(runtime)) +
                                             ", but there is no such runtime");
  }
  return {};
}

// Whether a node goes by that path, as events name it; `graph_path` is where `graph` is.
bool HasNode(const PlannedGraph& graph, std::string_view graph_path, std::string_view path) {
  const auto is_within = [&](const std::string& place) {
    return path.starts_with(place) && path.substr(place.size()).starts_with('/');
  };
  return std::ranges::any_of(graph.nodes, [&](const PlannedNode& node) {
    const std::string own = JoinPath(graph_path, node.id);
    if (own == path) return true;
    if (node.graph != nullptr) return is_within(own) && HasNode(*node.graph, own, path);
    if (node.native.tools == nullptr) return false;
    const Toolbox& box = *node.native.tools;
    for (std::size_t i = 0; i < box.tools.size(); ++i) {
      const std::string place = ToolPath(graph_path, node.id, box.infos[i].name);
      if (is_within(place) && HasNode(*box.tools[i].graph, place, path)) return true;
    }
    return false;
  });
}

Result<void> CheckPolicies(const Plan& plan, const NodePolicies& policies) {
  for (const auto& [path, policy] : policies.nodes) {
    if (HasNode(plan.root(), "", path)) continue;
    return Fail(errors::kGraphConfig,
                "the run configuration: $.nodes names '" + path +
                    "', which is no node of the workflow; a node within a subgraph goes by its "
                    "path, such as outer/inner, one of a tool by agent:tool/inner");
  }
  return {};
}

Result<void> CheckStart(const Plan& plan, const RunConfig& config, const Services& services) {
  CAISSON_TRY(CheckRange(config.recursion_limit, kMaxRecursionLimit, "recursion_limit"));
  CAISSON_TRY(CheckRange(config.max_concurrency, kMaxConcurrency, "max_concurrency"));
  CAISSON_TRY(CheckPolicies(plan, config.policies));
  return CheckRuntimes(plan, config.runtimes, services);
}

json::Value QuestionsJson(const std::vector<Question>& questions) {
  json::Array list;
  for (const Question& question : questions) {
    list.push_back(json::Object{{"node_path", question.node_path}, {"value", question.value}});
  }
  return list;
}

// What the last event of a run, or of a part of it, tells.
json::Value Summary(const RunResult& result) {
  json::Object summary{
      {"status", RunStatusName(result.status)}, {"steps", result.steps}, {"state", result.state}};
  if (result.status == RunStatus::kInterrupted) {
    summary.Set("questions", QuestionsJson(result.questions));
  }
  if (result.error) summary.Set("error", result.error->ToJson());
  return summary;
}

void EmitStart(RunContext& context, EventKind kind, const json::Value& data) {
  if (!context.emitter.active()) return;
  Event event;
  event.kind = kind;
  event.data = &data;
  context.emitter.Emit(event);
}

void EmitEnd(RunContext& context, const RunResult& result) {
  if (!context.emitter.active()) return;
  const json::Value summary = Summary(result);
  Event event;
  event.kind = result.status == RunStatus::kInterrupted ? EventKind::kRunInterrupted
                                                        : EventKind::kRunFinished;
  event.duration = result.duration;
  event.data = &summary;
  context.emitter.Emit(event);
}

json::Value TracebackJson(const std::vector<AuthorFrame>& traceback) {
  json::Array frames;
  for (const AuthorFrame& frame : traceback) {
    json::Object object{{"function", frame.function}};
    if (frame.body_line != 0) object.Set("body_line", frame.body_line);
    if (frame.file_line != 0) object.Set("file_line", frame.file_line);
    frames.emplace_back(std::move(object));
  }
  return frames;
}

}  // namespace

std::string_view RunStatusName(RunStatus status) {
  static constexpr std::string_view kNames[] = {"succeeded", "failed", "cancelled", "timed_out",
                                                "interrupted"};
  return kNames[static_cast<std::size_t>(status)];
}

json::Value RunError::ToJson() const {
  json::Object object{{"code", code.name}, {"message", message}};
  const auto set = [&](std::string_view key, const std::string& text) {
    if (!text.empty()) object.Set(key, text);
  };
  set("node", node_id);
  set("node_path", node_path);
  if (step != 0) object.Set("step", step);
  if (span.known()) object.Set("line", span.line);
  set("error_type", error_type);
  if (!traceback.empty()) object.Set("traceback", TracebackJson(traceback));
  set("hint", hint);
  set("guest_output", guest_output);
  return object;
}

RunContext::RunContext(const Plan& plan, const RunConfig& run_config, const Services& run_services,
                       std::string id, const Progress* progress)
    : config(run_config),
      services(run_services),
      table(plan.table()),
      run_id(std::move(id)),
      interrupt(run_services.stop, DeadlineOf(run_config)),
      emitter(run_services.events, run_services.journal, run_id,
              progress != nullptr ? progress->sequence() : 0),
      pool(static_cast<std::size_t>(run_config.max_concurrency.value_or(kMaxConcurrency))),
      budget(run_config.state_bytes),
      new_id(run_services.new_message_id ? run_services.new_message_id : RandomUuid),
      guest_config(GuestConfig(run_config, run_id)),
      meter(run_config.budget, progress != nullptr ? progress->usage() : Usage{}) {
  if (services.log) {
    warn = [this](std::string_view message) { Log(nodes::LogLevel::kWarning, message); };
  }
}

void RunContext::Log(nodes::LogLevel level, std::string_view message) {
  if (!services.log) return;
  const std::lock_guard lock(log_mutex_);
  services.log(level, message);
}

void RunContext::AddQuestion(Question question) {
  const std::lock_guard lock(questions_mutex_);
  questions_.push_back(std::move(question));
}

std::vector<Question> RunContext::TakeQuestions() {
  const std::lock_guard lock(questions_mutex_);
  std::ranges::sort(questions_, {}, &Question::node_path);
  return std::move(questions_);
}

nodes::State InitialState(json::Value inputs, const RunConfig& config, const std::string& run_id) {
  nodes::State state;
  state.Set(StateField::kMessages, json::Array());
  state.Set(StateField::kWorkspaceId,
            config.workspace_id ? json::Value(*config.workspace_id) : nullptr);
  state.Set(StateField::kInputs, std::move(inputs));
  state.Set(StateField::kNodeResults, json::Object());
  state.Set(StateField::kConfig, StateConfig(config, run_id));
  return state;
}

namespace {

// From the first event to the last one.
RunResult RunFrom(RunContext& context, const Plan& plan, nodes::State state,
                  const Progress* progress) {
  RunResult result;
  result.run_id = context.run_id;
  for (const std::string& id : plan.code_nodes()) {
    result.runtimes.Set(id, CodeRuntimeName(context.config.runtimes.Of(id)));
  }
  const GraphProgress* from = progress != nullptr ? &progress->root() : nullptr;
  if (from != nullptr) result.steps = from->steps;
  auto ran =
      RunGraph(context, {plan.root(), "", context.interrupt, from}, state, result.steps, nullptr);
  if (!ran) {
    result.status = ran.error().status;
    result.error = std::move(ran.error().error);
  }
  if (result.status == RunStatus::kInterrupted) result.error.reset();
  result.questions = context.TakeQuestions();
  result.state = state.ToJson();
  result.node_visits = context.meter.visits();
  result.tokens = context.meter.tokens();
  result.duration = Clock::now() - context.emitter.start();
  EmitEnd(context, result);
  // Whatever else it is: a run whose end is not in the journal has not ended for it, and nobody can
  // answer a question that is not there.
  const bool is_good = result.ok() || result.status == RunStatus::kInterrupted;
  if (auto kept = context.emitter.Commit(); !kept && is_good) {
    result.status = RunStatus::kFailed;
    result.questions.clear();
    result.error =
        RunError{kept.error().code, "the run's end cannot be recorded: " + kept.error().message};
  }
  return result;
}

Result<void> CheckAnswers(const Progress& progress, const json::Object& answers) {
  for (const auto& [path, answer] : answers) {
    const bool is_asked = std::ranges::any_of(
        progress.questions(), [&](const Question& question) { return question.node_path == path; });
    if (is_asked) continue;
    std::string asked;
    for (const Question& question : progress.questions()) {
      asked += (asked.empty() ? "" : ", ") + ("'" + question.node_path + "'");
    }
    return Fail(errors::kGraphAnswer, "the node '" + path + "' does not wait for an answer; " +
                                          (asked.empty() ? "none does" : asked + " waits"));
  }
  return {};
}

}  // namespace

Result<RunResult> Run(const Plan& plan, json::Value inputs, const RunConfig& config,
                      const Services& services) {
  CAISSON_TRY(CheckStart(plan, config, services));
  if (auto bounds = CheckBounds(inputs); !bounds) {
    return Fail(bounds.error().code, "the run's inputs: " + bounds.error().message);
  }
  RunContext context(plan, config, services, config.run_id.empty() ? RandomUuid() : config.run_id,
                     nullptr);
  nodes::State state = InitialState(std::move(inputs), config, context.run_id);
  if (auto taken = context.budget.Take(Weigh(state)); !taken) {
    return Fail(taken.error().code, "the run's inputs and configuration: " + taken.error().message);
  }
  EmitStart(context, EventKind::kRunStarted, *state.Find(StateField::kInputs));
  return RunFrom(context, plan, std::move(state), nullptr);
}

Result<RunResult> Resume(const Plan& plan, const Progress& progress, const json::Object& answers,
                         const RunConfig& config, const Services& services) {
  CAISSON_TRY(CheckStart(plan, config, services));
  CAISSON_TRY(CheckAnswers(progress, answers));
  if (config.run_id.empty()) {
    return Fail(errors::kGraphConfig, "a run that is resumed needs its id");
  }
  Progress now = progress;
  KeptEvent resumed;
  resumed.kind = EventKind::kRunResumed;
  resumed.sequence = progress.sequence() + 1;
  resumed.run_id = config.run_id;
  resumed.data = json::Value(answers);
  CAISSON_TRY(now.Apply(resumed));
  RunContext context(plan, config, services, config.run_id, &progress);
  nodes::State state = now.root().state;
  if (auto taken = context.budget.Take(Weigh(state)); !taken) {
    return Fail(taken.error().code, "the run's state: " + taken.error().message);
  }
  EmitStart(context, EventKind::kRunResumed, *resumed.data);
  return RunFrom(context, plan, std::move(state), &now);
}

}  // namespace caisson::graph
