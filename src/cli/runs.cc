// SPDX-License-Identifier: Apache-2.0
#include "runs/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "api/text.h"
#include "base/foreign_text.h"
#include "cli/commands.h"
#include "cli/execution.h"
#include "cli/files.h"
#include "cli/interrupt.h"
#include "cli/node_host.h"
#include "cli/run_credentials.h"
#include "cli/run_store.h"
#include "errors/cli.h"
#include "errors/graph.h"
#include "errors/runs.h"
#include "json/reader.h"
#include "store/sqlite/workflow_store.h"
#include "workflow/loader.h"

namespace caisson::cli {
namespace {

constexpr std::int64_t kBatches = 256;
constexpr std::chrono::milliseconds kPoll{200};

// A text of the store as JSON; null when there is none.
json::Value Parsed(const std::string& text) {
  return text.empty() ? json::Value() : json::Read(text).value_or(json::Value());
}

json::Object ToJson(const runs::Shown& run) {
  const store::WorkflowRun& row = run.row;
  json::Object out{{"id", row.id},
                   {"status", run.status},
                   {"name", row.name},
                   {"workflow", row.workflow},
                   {"steps", row.steps},
                   {"created_at", api::Timestamp(row.created_at)},
                   {"updated_at", api::Timestamp(row.updated_at)}};
  if (row.ended_at) out.Set("ended_at", api::Timestamp(*row.ended_at));
  if (!row.parent.empty()) {
    out.Set("forked_from", json::Object{{"id", row.parent}, {"step", row.parent_step}});
  }
  if (!row.error.empty()) out.Set("error", Parsed(row.error));
  if (!row.questions.empty()) out.Set("questions", Parsed(row.questions));
  return out;
}

std::string ToTable(const std::vector<runs::Shown>& all) {
  std::string text =
      fmt::format("{:<36} {:<12} {:>6} {:<25} {}\n", "ID", "STATUS", "STEPS", "CREATED", "NAME");
  for (const runs::Shown& run : all) {
    text += fmt::format("{:<36} {:<12} {:>6} {:<25} {}\n", ShowForeignLine(run.row.id, 64),
                        run.status, run.row.steps, api::Timestamp(run.row.created_at),
                        ShowForeignLine(run.row.name, 200));
  }
  return text;
}

ExitCode List(runs::Runs& runs, const RunsArguments& arguments, Console& console) {
  store::RunFilter filter;
  filter.statuses = arguments.statuses;
  filter.limit = arguments.limit;
  // One that crashed is running as far as the store knows.
  if (std::ranges::count(filter.statuses, "crashed") > 0) filter.statuses.emplace_back("running");
  auto all = runs.List(filter);
  if (!all) return console.Complain(all.error());
  if (!arguments.statuses.empty()) {
    std::erase_if(*all, [&](const runs::Shown& run) {
      return std::ranges::count(arguments.statuses, run.status) == 0;
    });
  }
  if (!arguments.json) return PrintText(ToTable(*all), console);
  json::Array list;
  for (const runs::Shown& run : *all) list.emplace_back(ToJson(run));
  return PrintJson(json::Object{{"runs", std::move(list)}}, console);
}

ExitCode Show(runs::Runs& runs, const RunsArguments& arguments, Console& console) {
  auto run = runs.Find(arguments.id);
  if (!run) return console.Complain(run.error());
  auto progress = runs.ProgressAt(*run, arguments.step);
  if (!progress) return console.Complain(progress.error());
  json::Object out = ToJson(*run);
  const graph::GraphProgress& root = progress->root();
  json::Array current;
  for (const std::string& id : root.current) {
    if (!root.finished.contains(id)) current.emplace_back(id);
  }
  out.Set("steps", root.steps + (root.step_is_finished() ? 1 : 0));
  out.Set("current", std::move(current));
  out.Set("node_visits", progress->usage().visits);
  out.Set("tokens", progress->usage().tokens);
  out.Set("state", progress->Latest().ToJson());
  return PrintJson(std::move(out), console);
}

ExitCode Cancel(runs::Runs& runs, const RunsArguments& arguments, Console& console) {
  auto ended = runs.Cancel(arguments.id);
  if (!ended) return console.Complain(ended.error());
  console.Info(*ended ? "the run is cancelled"
                      : "the process that runs it has been asked to stop it");
  return ExitCode::kOk;
}

// The answers by the path of their node.
Result<json::Object> ReadAnswers(const RunsArguments& arguments, const graph::Progress& progress) {
  json::Object answers;
  if (arguments.value) {
    if (progress.questions().size() != 1) {
      return Fail(errors::kGraphAnswer,
                  "--value answers the one question of a run, but this one has " +
                      std::to_string(progress.questions().size()) +
                      "; see caisson runs show, and use --answer NODE=JSON");
    }
    CAISSON_ASSIGN(json::Value value, ReadJsonArgument(*arguments.value, "--value"));
    answers.Set(progress.questions().front().node_path, std::move(value));
  }
  for (const std::string& text : arguments.answers) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Fail(errors::kCliUsage, "--answer must be NODE=JSON, such as 'ask=\"yes\"'");
    }
    CAISSON_ASSIGN(json::Value value, ReadJsonArgument(text.substr(equals + 1), "--answer"));
    const std::string node = text.substr(0, equals);
    if (answers.Contains(node)) {
      return Fail(errors::kCliUsage, "the question of the node '" + node +
                                         "' is answered twice; give it one --answer or --value");
    }
    answers.Set(node, std::move(value));
  }
  return answers;
}

// The workflow of a run, checked again like any IR.
Result<LoadedSource> LoadWorkflow(const runs::Held& held) {
  LoadedSource source;
  source.name = held.record->run().name;
  source.is_ir = true;
  workflow::CompileOptions options;
  options.runtimes = held.settings.runtimes;
  auto loaded = workflow::LoadIr(std::string_view(held.ir), options);
  if (loaded.graph == nullptr) {
    const std::string why =
        loaded.diagnostics.empty() ? "" : ": " + loaded.diagnostics.front().message;
    return Fail(errors::kGraphOtherWorkflow, "the run's workflow is no longer accepted" + why);
  }
  CAISSON_ASSIGN(const std::string hash, workflow::ContentId(*loaded.graph));
  if (hash != held.record->run().workflow) {
    return Fail(errors::kGraphOtherWorkflow,
                "the workflow of the run " + held.record->run().id + " was " +
                    held.record->run().workflow + ", but what the store has under that is " + hash +
                    "; somebody changed the store, use a backup of it");
  }
  source.graph = loaded.graph;
  return source;
}

// Goes on with a run that is held.
Result<ExitCode> GoOn(store::WorkflowStore& store, runs::Held held, const RunsArguments& arguments,
                      Console& console) {
  CAISSON_ASSIGN(const json::Object answers, ReadAnswers(arguments, held.progress));
  if (arguments.config) {
    CAISSON_ASSIGN(held.settings.document, ReadJsonArgument(*arguments.config, "--config"));
  }
  CAISSON_ASSIGN(const graph::RunConfig config, ConfigOf(held.settings, held.record->run().id));
  if (arguments.config) CAISSON_TRY(held.record->Replace(held.settings));
  CAISSON_ASSIGN(const LoadedSource source, LoadWorkflow(held));
  workflow::CompileOptions options;
  options.runtimes = held.settings.runtimes;
  CAISSON_ASSIGN(const std::unique_ptr<host::NodeHost> host,
                 OpenNodeHost(arguments.execution.node_host, *source.graph, console));
  CAISSON_ASSIGN(const graph::Plan plan,
                 graph::Plan::Create(source.graph, nodes::BuiltinNodes(),
                                     {.compile = options, .host = host.get()}));
  CAISSON_ASSIGN(RunCredentials credentials, RunCredentials::Open(arguments.execution, &store));
  EventStream events(console);
  if (arguments.execution.events_file) {
    CAISSON_TRY(events.Open(*arguments.execution.events_file));
  }
  IsolationArguments isolation{arguments.allow_unjailed, arguments.workers, config.limits};
  const Execution execution{
      plan,   config,     arguments.execution, isolation, credentials.resolver(),
      &store, host.get(), held.progress};
  CAISSON_ASSIGN(
      const graph::RunResult result,
      Execute(
          execution, [&] { return Result<std::unique_ptr<runs::Record>>(std::move(held.record)); },
          [&](const graph::Services& services) {
            return graph::Resume(plan, held.progress, answers, config, services);
          },
          events, console));
  const ExitCode code =
      PrintOutcome(result, arguments.execution, source, workflow::DiagnosticFormat::kText, console);
  CAISSON_TRY(events.Finish());
  return code;
}

ExitCode HoldAndGoOn(store::WorkflowStore& store, const RunsArguments& arguments,
                     Console& console) {
  runs::Runs runs(store);
  const bool is_fork = arguments.action == RunsArguments::Action::kFork;
  auto held = is_fork ? runs.Fork(arguments.id, *arguments.step) : runs.Claim(arguments.id);
  if (!held) return console.Complain(held.error());
  if (is_fork) console.Info("the fork is the run " + held->record->run().id);
  auto code = GoOn(store, *std::move(held), arguments, console);
  return code ? *code : console.Complain(code.error());
}

ExitCode Events(runs::Runs& runs, const RunsArguments& arguments, Console& console) {
  const Interrupt interrupt(console);
  std::int64_t after = arguments.after;
  while (!interrupt.token().stop_requested()) {
    // Before the events: those that a run ends with are there when it has ended.
    auto run = runs.Find(arguments.id);
    if (!run) return console.Complain(run.error());
    auto batches = runs.EventsAfter(*run, after, kBatches);
    if (!batches) return console.Complain(batches.error());
    for (const store::RunEvents& batch : *batches) {
      std::string_view lines = batch.lines;
      for (std::int64_t sequence = batch.first; sequence <= after; ++sequence) {
        lines.remove_prefix(std::min(lines.find('\n'), lines.size() - 1) + 1);
      }
      const ExitCode printed = PrintText(SafeJson(lines), console);
      if (printed != ExitCode::kOk) return printed;
      after = batch.last;
    }
    if (!batches->empty()) continue;
    if (!arguments.follow || run->status != "running") break;
    std::this_thread::sleep_for(kPoll);
  }
  return ExitCode::kOk;
}

ExitCode GiveFile(store::WorkflowStore& store, const RunsArguments& arguments, Console& console) {
  constexpr std::string_view kScheme = "caisson:file/";
  const std::string id =
      arguments.id.starts_with(kScheme) ? arguments.id.substr(kScheme.size()) : arguments.id;
  auto file = store.Read([&](store::WorkflowRows& rows) { return rows.FindFile(id); });
  if (!file) return console.Complain(file.error());
  if (!*file) {
    return console.Complain(
        {.code = errors::kRunsNotFound, .message = "there is no file '" + id + "'"});
  }
  if (!arguments.output) return PrintText((*file)->content, console);
  auto written = WriteFile(*arguments.output, (*file)->content);
  return written ? ExitCode::kOk : console.Complain(written.error());
}

ExitCode Remove(runs::Runs& runs, const RunsArguments& arguments, Console& console) {
  auto removed = runs.Remove(arguments.id);
  return removed ? ExitCode::kOk : console.Complain(removed.error());
}

ExitCode Act(const RunsArguments& arguments, Console& console) {
  console.set_quiet(arguments.execution.quiet);
  auto store = OpenRunStore(arguments.execution.record);
  if (!store) return console.Complain(store.error());
  runs::Runs runs(**store);
  switch (arguments.action) {
    case RunsArguments::Action::kList:
      return List(runs, arguments, console);
    case RunsArguments::Action::kShow:
      return Show(runs, arguments, console);
    case RunsArguments::Action::kCancel:
      return Cancel(runs, arguments, console);
    case RunsArguments::Action::kResume:
    case RunsArguments::Action::kFork:
      return HoldAndGoOn(**store, arguments, console);
    case RunsArguments::Action::kEvents:
      return Events(runs, arguments, console);
    case RunsArguments::Action::kFile:
      return GiveFile(**store, arguments, console);
    case RunsArguments::Action::kRemove:
      return Remove(runs, arguments, console);
  }
  std::abort();
}

ExitCode Act(const SecretsArguments& arguments, Console& console) {
  return ManageSecrets(arguments, console);
}

ExitCode Act(const BackupArguments& arguments, Console& console) {
  auto path = RunStorePath(arguments.record);
  if (!path) return console.Complain(path.error());
  auto copied = store::sqlite::BackUp(*path, arguments.copy);
  if (!copied) return console.Complain(copied.error());
  console.Info("copied " + *path + " to " + arguments.copy);
  return ExitCode::kOk;
}

}  // namespace

ExitCode ManageRuns(const RunsCommand& command, Console& console) {
  return std::visit([&](const auto& arguments) { return Act(arguments, console); }, command);
}

}  // namespace caisson::cli
