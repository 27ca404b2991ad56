// SPDX-License-Identifier: Apache-2.0
#include "cli/execution.h"

#include <optional>
#include <set>
#include <stop_token>
#include <utility>

#include "base/foreign_text.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/isolation.h"
#include "cli/run_report.h"
#include "errors/graph.h"
#include "graph/needs.h"
#include "http/outbound.h"
#include "json/writer.h"
#include "runs/node_stores.h"

namespace caisson::cli {
namespace {

std::function<void(nodes::LogLevel, std::string_view)> LogTo(Console& console) {
  return [&console](nodes::LogLevel level, std::string_view message) {
    if (level == nodes::LogLevel::kInfo) {
      console.Info(message);
    } else {
      console.Warn(message);
    }
  };
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

// Stops when either of two does.
class EitherStop {
 public:
  EitherStop(const std::stop_token& a, const std::stop_token& b)
      : on_a_(a, [this] { source_.request_stop(); }),
        on_b_(b, [this] { source_.request_stop(); }) {}
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::stop_callback<std::function<void()>> on_a_;
  std::stop_callback<std::function<void()>> on_b_;
};

void SayQuestions(const graph::RunResult& result, Console& console) {
  for (const graph::Question& question : result.questions) {
    const json::Value* message = question.value.Find("message");
    const std::string text = message != nullptr && message->is_string()
                                 ? message->as_string()
                                 : json::Write(question.value).value_or("");
    console.Say("caisson: the node '" + ShowForeignLine(question.node_path, 200) +
                "' asks: " + ShowForeign(text) + "\n");
  }
  console.Say("caisson: the run waits; answer it with\n  caisson runs resume " + result.run_id +
              (result.questions.size() == 1
                   ? " --value '\"...\"'\n"
                   : " --answer '" + ShowForeignLine(result.questions.front().node_path, 200) +
                         "=\"...\"'\n"));
}

}  // namespace

Result<graph::RunResult> Execute(const Execution& execution, const MakeRecord& make_record,
                                 const RunIt& run_it, EventStream& events, Console& console) {
  // The last to be destroyed: no worker may hear of a signal before we do.
  const Interrupt interrupt(console);
  std::stop_source from_record;
  const EitherStop stop(interrupt.token(), from_record.get_token());
  graph::Services services;
  const auto network = http::MakeOutbound({.loopback = execution.arguments.endpoints});
  services.network = network.get();
  std::optional<runs::StoredBlobs> blobs;
  std::optional<runs::StoredItems> items;
  if (execution.store != nullptr) {
    services.blobs = &blobs.emplace(*execution.store);
    services.items = &items.emplace(*execution.store);
  }
  CAISSON_TRY(graph::CheckNeeds(execution.plan, services));
  CodeRuntimes runtimes(execution.plan, execution.config.runtimes);
  auto started = runtimes.Start(execution.isolation, stop.token());
  if (interrupt.token().stop_requested()) {
    return Fail(errors::kGraphCancelled, "the run was cancelled before it began");
  }
  if (!started) return Fail(std::move(started).error());
  std::unique_ptr<runs::Record> record;
  if (make_record) {
    CAISSON_ASSIGN(record, make_record());
  }
  const std::stop_callback on_record(record ? record->stop() : std::stop_token(),
                                     [&] { from_record.request_stop(); });
  services.micropython = runtimes.micropython();
  services.cpython = runtimes.cpython();
  services.host = execution.host;
  services.credentials = &execution.credentials;
  services.journal = record.get();
  graph::Stream stream(execution.arguments.streams, execution.progress,
                       [&events](const json::Value& line) { events.Write(line); });
  if (!execution.arguments.streams.empty()) {
    services.events = &stream;
    services.deltas = [&stream](const graph::Delta& delta) { stream.OnDelta(delta); };
  } else if (execution.arguments.events || execution.arguments.events_file) {
    services.events = &events;
    services.deltas = [&events](const graph::Delta& delta) { events.OnDelta(delta); };
  }
  services.log = LogTo(console);
  services.stop = stop.token();
  return run_it(services);
}

ExitCode PrintOutcome(const graph::RunResult& result, const ExecutionArguments& arguments,
                      const LoadedSource& source, workflow::DiagnosticFormat format,
                      Console& console) {
  ExitCode code = ExitCode::kOk;
  if (result.error) {
    code = ExitCodeOf(result.error->code);
    console.Say(RenderRunError(*result.error, source, format, console.color()));
  }
  if (result.status == graph::RunStatus::kInterrupted) {
    code = ExitCode::kInterrupted;
    SayQuestions(result, console);
  }
  if (!arguments.report && !result.ok()) return code;
  const ExitCode printed = PrintJson(arguments.report ? RunReport(result) : result.state, console);
  return code != ExitCode::kOk ? code : printed;
}

}  // namespace caisson::cli
