// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>

#include "cli/commands.h"
#include "cli/event_stream.h"
#include "cli/files.h"
#include "cli/interrupt.h"
#include "cli/isolation.h"
#include "cli/mode.h"
#include "cli/run_report.h"
#include "cli/source.h"
#include "errors/cli.h"
#include "errors/graph.h"
#include "graph/credentials.h"
#include "graph/plan.h"
#include "graph/run.h"
#include "json/writer.h"

namespace caisson::cli {
namespace {

constexpr std::size_t kMaxSecretBytes = 1u << 20;

Result<void> CheckStandardInput(const RunArguments& arguments) {
  const int uses = (arguments.source.file == "-") + (arguments.input == "-") +
                   (arguments.config == std::optional<std::string>("-"));
  if (uses <= 1) return {};
  return Fail(errors::kCliUsage, "only one of FILE, --input and --config can be standard input");
}

Result<std::string> ReadSecret(const CredentialArgument& argument) {
  if (argument.from_environment) {
    const char* value = std::getenv(argument.place.c_str());
    if (value != nullptr) return value;
    return Fail(errors::kCliCredentialUnreadable, "credential '" + argument.name +
                                                      "': the environment variable " +
                                                      argument.place + " is not set");
  }
  auto text = ReadFile(argument.place, kMaxSecretBytes);
  if (!text) {
    return Fail(errors::kCliCredentialUnreadable,
                "credential '" + argument.name + "': " + text.error().message);
  }
  if (text->ends_with('\n')) text->pop_back();  // the one that editors and echo add
  return text;
}

Result<graph::StaticCredentials> ReadCredentials(const RunArguments& arguments) {
  graph::StaticCredentials credentials;
  for (const CredentialArgument& argument : arguments.credentials) {
    CAISSON_ASSIGN(std::string secret, ReadSecret(argument));
    credentials.Add(argument.name, std::move(secret));
  }
  return credentials;
}

Result<graph::RunConfig> ReadConfig(const RunArguments& arguments) {
  json::Value document = json::Object{};
  if (arguments.config) {
    CAISSON_ASSIGN(document, ReadJsonArgument(*arguments.config, "--config"));
  }
  CAISSON_ASSIGN(graph::RunConfig config, graph::ParseRunConfig(document));
  if (const json::Value* thread = config.configurable.Find("thread_id");
      thread != nullptr && thread->is_string()) {
    config.run_id = thread->as_string();
  }
  config.policy = arguments.policy;
  config.runtimes = arguments.source.runtimes;
  config.limits = arguments.isolation.limits;
  config.timeout = arguments.timeout;
  config.state_bytes = arguments.state_bytes;
  return config;
}

// Everything that is read before anything runs.
struct Preparation {
  json::Value input;
  graph::RunConfig config;
  graph::StaticCredentials credentials;
};

Result<Preparation> Prepare(const RunArguments& arguments) {
  CAISSON_TRY(CheckStandardInput(arguments));
  Preparation preparation;
  CAISSON_ASSIGN(preparation.input, ReadJsonArgument(arguments.input, "--input"));
  if (!preparation.input.is_object()) {
    return Fail(errors::kCliUsage,
                "--input must be a JSON object, such as '{\"score\": 7}': its members are what the "
                "workflow finds in state[\"inputs\"]");
  }
  CAISSON_ASSIGN(preparation.config, ReadConfig(arguments));
  CAISSON_ASSIGN(preparation.credentials, ReadCredentials(arguments));
  return preparation;
}

std::function<void(nodes::LogLevel, std::string_view)> LogTo(Console& console) {
  return [&console](nodes::LogLevel level, std::string_view message) {
    if (level == nodes::LogLevel::kInfo) {
      console.Info(message);
    } else {
      console.Warn(message);
    }
  };
}

ExitCode PrintOutcome(const graph::RunResult& result, const RunArguments& arguments,
                      const LoadedSource& source, Console& console) {
  ExitCode code = ExitCode::kOk;
  if (result.error) {
    code = ExitCodeOf(result.error->code);
    console.Say(RenderRunError(*result.error, source, arguments.source.format, console.color()));
  }
  if (!arguments.report && !result.ok()) return code;
  const ExitCode printed = PrintJson(arguments.report ? RunReport(result) : result.state, console);
  return code != ExitCode::kOk ? code : printed;
}

// The runtimes that the code nodes of a run need, started.
class CodeRuntimes {
 public:
  CodeRuntimes(const graph::Plan& plan, const workflow::CodeRuntimes& chosen) {
    for (const std::string& id : plan.code_nodes()) needed_.insert(chosen.Of(id));
  }

  // Now, and not at the first code node: a run that will be refused must not have begun.
  Result<void> Start(const IsolationArguments& arguments, const std::stop_token& stop) {
    if (needed_.contains(CodeRuntime::kMicroPython)) {
      CAISSON_ASSIGN(micropython_, OpenIsolation(arguments));
      // A call cannot be talked to: its worker has to go.
      end_calls_.emplace(stop, [this] { micropython_->Shutdown(); });
      CAISSON_TRY(micropython_->Warm());
    }
    if (needed_.contains(CodeRuntime::kCPython)) {
      CAISSON_ASSIGN(cpython_, CpythonIsolation::Open(arguments, stop));
      CAISSON_TRY(cpython_->Warm());
    }
    return {};
  }

  isolate::Runtime* micropython() { return micropython_.get(); }
  isolate::Runtime* cpython() { return cpython_ ? cpython_->runtime() : nullptr; }

 private:
  using CodeRuntime = workflow::CodeRuntime;

  std::set<CodeRuntime> needed_;
  std::unique_ptr<isolate::WorkerRuntime> micropython_;
  std::optional<CpythonIsolation> cpython_;
  std::optional<std::stop_callback<std::function<void()>>> end_calls_;
};

Result<graph::RunResult> Execute(const graph::Plan& plan, Preparation preparation,
                                 const RunArguments& arguments, EventStream& events,
                                 Console& console) {
  // The last to be destroyed: no worker may hear of a signal before we do.
  const Interrupt interrupt(console);
  CodeRuntimes runtimes(plan, preparation.config.runtimes);
  auto started = runtimes.Start(arguments.isolation, interrupt.token());
  if (interrupt.token().stop_requested()) {
    return Fail(errors::kGraphCancelled, "the run was cancelled before it began");
  }
  if (!started) return Fail(std::move(started).error());
  graph::Services services;
  services.micropython = runtimes.micropython();
  services.cpython = runtimes.cpython();
  services.credentials = &preparation.credentials;
  if (arguments.events || arguments.events_file) services.events = &events;
  services.log = LogTo(console);
  services.stop = interrupt.token();
  return graph::Run(plan, std::move(preparation.input), preparation.config, services);
}

}  // namespace

ExitCode RunWorkflow(const RunArguments& arguments, Console& console) {
  console.set_quiet(arguments.quiet);
  auto mode = ChooseMode(arguments.source.mode, [](const char* name) { return std::getenv(name); });
  if (!mode) return console.Complain(mode.error());
  console.Info(StartupLine(*mode, arguments.source.runtimes));

  auto source = OpenSource(arguments.source, console);
  if (!source) return source.error();
  auto preparation = Prepare(arguments);
  if (!preparation) return console.Complain(preparation.error());
  auto plan = graph::Plan::Create(source->graph, nodes::BuiltinNodes(),
                                  {.compile = CompileOptionsOf(arguments.source)});
  if (!plan) return console.Complain(plan.error());
  EventStream events(console);
  if (arguments.events_file) {
    auto opened = events.Open(*arguments.events_file);
    if (!opened) return console.Complain(opened.error());
  }

  auto result = Execute(*plan, *std::move(preparation), arguments, events, console);
  if (!result) return console.Complain(result.error());
  const ExitCode code = PrintOutcome(*result, arguments, *source, console);
  auto finished = events.Finish();
  if (finished) return code;
  const ExitCode lost = console.Complain(finished.error());
  return code != ExitCode::kOk ? code : lost;
}

}  // namespace caisson::cli
