// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "capi/answer.h"
#include "capi/engine.h"
#include "capi/event_lines.h"
#include "capi/stoppable_calls.h"
#include "cli/isolation.h"
#include "cli/run_report.h"
#include "errors/graph.h"
#include "errors/library.h"
#include "errors/store.h"
#include "graph/credentials.h"
#include "graph/messages.h"
#include "graph/run.h"
#include "http/outbound.h"
#include "json/reader.h"
#include "runs/node_stores.h"
#include "runs/runs.h"
#include "workflow/loader.h"

namespace caisson::capi {
namespace {

using RunIt = std::function<Result<graph::RunResult>(const graph::Services& services)>;

// One attempt at a run: everything that it uses, made before it begins.
class Attempt {
 public:
  Attempt(Engine& engine, const std::stop_token& stop, const LineSink& sink)
      : engine_(engine), lines_(sink, stop_), has_sink_(sink != nullptr), on_stop_(stop, Stop()) {}

  std::stop_token stop() const { return stop_.get_token(); }

  // Now, and not at the first code node: a run that will be refused must not have begun.
  Result<void> StartRuntimes(const graph::Plan& plan, const workflow::CodeRuntimes& chosen) {
    std::set<workflow::CodeRuntime> needed;
    for (const std::string& id : plan.code_nodes()) needed.insert(chosen.Of(id));
    if (needed.contains(workflow::CodeRuntime::kMicroPython)) {
      CAISSON_ASSIGN(isolate::WorkerRuntime * workers, engine_.Workers());
      services_.micropython = &micropython_.emplace(*workers, stop());
    }
    if (needed.contains(workflow::CodeRuntime::kCPython)) {
      CAISSON_ASSIGN(cpython_, cli::CpythonIsolation::Open(engine_.isolation(), stop()));
      CAISSON_TRY(cpython_->Warm());
      services_.cpython = cpython_->runtime();
    }
    return {};
  }

  // `record` may be null.
  Result<graph::RunResult> Carry(const CarryOptions& options, std::unique_ptr<runs::Record> record,
                                 const RunIt& run_it) {
    for (const auto& [name, secret] : options.credentials) credentials_.Add(name, secret);
    const std::stop_callback on_record(record ? record->stop() : std::stop_token(), Stop());
    const auto network = http::MakeOutbound({.loopback = {options.endpoints}});
    services_.credentials = &credentials_;
    services_.network = network.get();
    services_.journal = record.get();
    OpenStores();
    if (has_sink_) {
      services_.events = &lines_;
      services_.deltas = [this](const graph::Delta& delta) { lines_.OnDelta(delta); };
    }
    services_.log = [this](nodes::LogLevel level, std::string_view text) { log_.Add(level, text); };
    services_.stop = stop();
    return run_it(services_);
  }

  json::Object Answer(const graph::RunResult& result) {
    json::Value report = cli::RunReport(result);
    json::Array questions;
    for (const graph::Question& each : result.questions) {
      questions.emplace_back(json::Object{{"node_path", each.node_path}, {"value", each.value}});
    }
    report.mutable_object().Set("questions", std::move(questions));
    report.mutable_object().Set("log", log_.Take());
    json::Object answer = Success();
    answer.Set("result", std::move(report));
    return answer;
  }

 private:
  std::function<void()> Stop() {
    return [this] { stop_.request_stop(); };
  }

  void OpenStores() {
    if (engine_.store() == nullptr) return;
    services_.blobs = &blobs_.emplace(*engine_.store());
    services_.items = &items_.emplace(*engine_.store());
  }

  Engine& engine_;
  std::stop_source stop_;
  EventLines lines_;
  const bool has_sink_;
  RunLog log_;
  graph::StaticCredentials credentials_;
  std::optional<StoppableCalls> micropython_;
  std::optional<cli::CpythonIsolation> cpython_;
  std::optional<runs::StoredBlobs> blobs_;
  std::optional<runs::StoredItems> items_;
  graph::Services services_;
  std::stop_callback<std::function<void()>> on_stop_;  // last: it uses stop_
};

Result<json::Value> ReadObject(std::string_view text, std::string_view what) {
  CAISSON_ASSIGN(json::Value value, json::Read(text));
  if (value.is_object()) return value;
  return Fail(errors::kLibraryOptions, std::string(what) + " must be a JSON object");
}

workflow::CompileOptions CompileOptionsOf(const workflow::CodeRuntimes& runtimes,
                                          const CarryOptions& options) {
  workflow::CompileOptions compile;
  compile.runtimes = runtimes;
  compile.enforce_node_policy = options.enforce_node_policy;
  return compile;
}

runs::Settings SettingsOf(const RunOptions& options) {
  runs::Settings settings;
  if (options.carry.config) settings.document = *options.carry.config;
  settings.policy = options.policy;
  settings.runtimes = options.runtimes;
  settings.limits = options.limits;
  settings.state_bytes = options.state_bytes;
  settings.timeout = options.timeout;
  return settings;
}

Result<json::Object> Begin(Engine& engine, std::shared_ptr<const workflow::Graph> graph,
                           std::string_view inputs, const RunOptions& options, Attempt& attempt) {
  CAISSON_ASSIGN(const json::Value input, ReadObject(inputs, "the inputs of a run"));
  const runs::Settings settings = SettingsOf(options);
  CAISSON_ASSIGN(const graph::RunConfig config,
                 ConfigOf(settings, options.run_id.empty() ? graph::RandomUuid() : options.run_id));
  CAISSON_ASSIGN(
      const graph::Plan plan,
      graph::Plan::Create(graph, nodes::BuiltinNodes(),
                          {.compile = CompileOptionsOf(options.runtimes, options.carry)}));
  CAISSON_TRY(attempt.StartRuntimes(plan, options.runtimes));
  std::unique_ptr<runs::Record> record;
  if (engine.store() != nullptr) {
    CAISSON_ASSIGN(
        record, runs::Runs(*engine.store()).Begin(*graph, options.name, settings, config, input));
  }
  CAISSON_ASSIGN(
      const graph::RunResult result,
      attempt.Carry(options.carry, std::move(record), [&](const graph::Services& services) {
        return graph::Run(plan, input, config, services);
      }));
  return attempt.Answer(result);
}

Result<std::shared_ptr<const workflow::Graph>> LoadAgain(const runs::Held& held,
                                                         const workflow::CompileOptions& options) {
  const auto loaded = workflow::LoadIr(std::string_view(held.ir), options);
  if (loaded.graph != nullptr) return loaded.graph;
  const std::string why =
      loaded.diagnostics.empty() ? "" : ": " + loaded.diagnostics.front().message;
  return Fail(errors::kGraphOtherWorkflow, "the run's workflow is no longer accepted" + why);
}

Result<json::Object> GoOn(Engine& engine, const std::string& run_id, std::string_view answers,
                          const CarryOptions& options, Attempt& attempt) {
  if (engine.store() == nullptr) {
    return Fail(errors::kLibraryOptions,
                "the engine records no runs, so none can be gone on with; make it with the option "
                "'store'");
  }
  CAISSON_ASSIGN(const json::Value given, ReadObject(answers, "the answers"));
  CAISSON_ASSIGN(runs::Held held, runs::Runs(*engine.store()).Claim(run_id));
  if (options.config) held.settings.document = *options.config;
  CAISSON_ASSIGN(const graph::RunConfig config, ConfigOf(held.settings, held.record->run().id));
  const auto compile = CompileOptionsOf(held.settings.runtimes, options);
  CAISSON_ASSIGN(const auto graph, LoadAgain(held, compile));
  CAISSON_ASSIGN(const graph::Plan plan,
                 graph::Plan::Create(graph, nodes::BuiltinNodes(), {.compile = compile}));
  CAISSON_TRY(attempt.StartRuntimes(plan, held.settings.runtimes));
  CAISSON_ASSIGN(
      const graph::RunResult result,
      attempt.Carry(options, std::move(held.record), [&](const graph::Services& services) {
        return graph::Resume(plan, held.progress, given.as_object(), config, services);
      }));
  return attempt.Answer(result);
}

}  // namespace

json::Object Engine::Run(std::string_view ir, std::string_view inputs, const RunOptions& options,
                         const std::stop_token& stop, const LineSink& sink) {
  const auto loaded = workflow::LoadIr(ir, CompileOptionsOf(options.runtimes, options.carry));
  if (loaded.graph == nullptr) return Refusal(loaded.diagnostics);
  Attempt attempt(*this, stop, sink);
  auto answer = Begin(*this, loaded.graph, inputs, options, attempt);
  return answer ? *std::move(answer) : Failure(answer.error());
}

json::Object Engine::Resume(const std::string& run_id, std::string_view answers,
                            const CarryOptions& options, const std::stop_token& stop,
                            const LineSink& sink) {
  Attempt attempt(*this, stop, sink);
  auto answer = GoOn(*this, run_id, answers, options, attempt);
  return answer ? *std::move(answer) : Failure(answer.error());
}

}  // namespace caisson::capi
