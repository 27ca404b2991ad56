// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <memory>
#include <utility>

#include "cli/commands.h"
#include "cli/event_stream.h"
#include "cli/execution.h"
#include "cli/files.h"
#include "cli/mode.h"
#include "cli/node_host.h"
#include "cli/run_credentials.h"
#include "cli/run_store.h"
#include "cli/source.h"
#include "errors/cli.h"
#include "graph/messages.h"
#include "graph/plan.h"
#include "graph/run.h"
#include "runs/runs.h"

namespace caisson::cli {
namespace {

Result<void> CheckStandardInput(const RunArguments& arguments) {
  const int uses = (arguments.source.file == "-") + (arguments.input == "-") +
                   (arguments.config == std::optional<std::string>("-"));
  if (uses <= 1) return {};
  return Fail(errors::kCliUsage, "only one of FILE, --input and --config can be standard input");
}

Result<runs::Settings> ReadSettings(const RunArguments& arguments) {
  runs::Settings settings;
  if (arguments.config) {
    CAISSON_ASSIGN(settings.document, ReadJsonArgument(*arguments.config, "--config"));
  }
  settings.policy = arguments.policy;
  settings.runtimes = arguments.source.runtimes;
  settings.limits = arguments.isolation.limits;
  settings.timeout = arguments.timeout;
  settings.state_bytes = arguments.state_bytes;
  return settings;
}

// Everything that is read before anything runs.
struct Preparation {
  json::Value input;
  runs::Settings settings;
  graph::RunConfig config;
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
  CAISSON_ASSIGN(preparation.settings, ReadSettings(arguments));
  CAISSON_ASSIGN(preparation.config, ConfigOf(preparation.settings, graph::RandomUuid()));
  return preparation;
}

Result<graph::RunResult> Carry(const graph::Plan& plan, host::Provider* host,
                               Preparation preparation, const RunArguments& arguments,
                               const LoadedSource& source, EventStream& events, Console& console) {
  std::unique_ptr<store::WorkflowStore> store;
  MakeRecord make_record;
  if (arguments.execution.record.durability != RecordArguments::Durability::kNone) {
    CAISSON_ASSIGN(store, OpenRunStore(arguments.execution.record));
    make_record = [&] {
      return runs::Runs(*store).Begin(*source.graph, source.name, preparation.settings,
                                      preparation.config, preparation.input);
    };
  }
  CAISSON_ASSIGN(RunCredentials credentials,
                 RunCredentials::Open(arguments.execution, store.get()));
  const Execution execution{plan,
                            preparation.config,
                            arguments.execution,
                            arguments.isolation,
                            credentials.resolver(),
                            store.get(),
                            host,
                            graph::Progress(graph::InitialState(
                                preparation.input, preparation.config, preparation.config.run_id))};
  return Execute(
      execution, make_record,
      [&](const graph::Services& services) {
        return graph::Run(plan, preparation.input, preparation.config, services);
      },
      events, console);
}

}  // namespace

ExitCode RunWorkflow(const RunArguments& arguments, Console& console) {
  console.set_quiet(arguments.execution.quiet);
  auto mode = ChooseMode(arguments.source.mode, [](const char* name) { return std::getenv(name); });
  if (!mode) return console.Complain(mode.error());
  console.Info(StartupLine(*mode, arguments.source.runtimes));

  auto source = OpenSource(arguments.source, console);
  if (!source) return source.error();
  auto preparation = Prepare(arguments);
  if (!preparation) return console.Complain(preparation.error());
  auto host = OpenNodeHost(arguments.execution.node_host, *source->graph, console);
  if (!host) return console.Complain(host.error());
  auto plan =
      graph::Plan::Create(source->graph, nodes::BuiltinNodes(),
                          {.compile = CompileOptionsOf(arguments.source), .host = host->get()});
  if (!plan) return console.Complain(plan.error());
  EventStream events(console);
  if (arguments.execution.events_file) {
    auto opened = events.Open(*arguments.execution.events_file);
    if (!opened) return console.Complain(opened.error());
  }

  auto result =
      Carry(*plan, host->get(), *std::move(preparation), arguments, *source, events, console);
  if (!result) return console.Complain(result.error());
  const ExitCode code =
      PrintOutcome(*result, arguments.execution, *source, arguments.source.format, console);
  auto finished = events.Finish();
  if (finished) return code;
  const ExitCode lost = console.Complain(finished.error());
  return code != ExitCode::kOk ? code : lost;
}

}  // namespace caisson::cli
