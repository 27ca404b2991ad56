// SPDX-License-Identifier: Apache-2.0
// Carrying out a run from the command line, whether it begins or goes on: runtimes, credentials,
// events, signals, and what is printed at its end.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/event_stream.h"
#include "cli/source.h"
#include "errors/exit_codes.h"
#include "graph/credentials.h"
#include "graph/plan.h"
#include "graph/run.h"
#include "host/provider.h"
#include "runs/record.h"

namespace caisson::cli {

// What is made ready before a run, so that one that will be refused has not begun.
struct Execution {
  const graph::Plan& plan;
  const graph::RunConfig& config;
  const ExecutionArguments& arguments;
  const IsolationArguments& isolation;
  graph::CredentialResolver& credentials;
  store::WorkflowStore* store;  // null: nodes keep nothing
  host::Provider* host;         // of the plan; may be null
  graph::Progress progress;     // where the run begins
};
// Gives the run its services. `make_record` (may be null) is called once everything else is there;
// what it gives is the run's journal.
using RunIt = std::function<Result<graph::RunResult>(const graph::Services& services)>;
using MakeRecord = std::function<Result<std::unique_ptr<runs::Record>>()>;
Result<graph::RunResult> Execute(const Execution& execution, const MakeRecord& make_record,
                                 const RunIt& run_it, EventStream& events, Console& console);

// The state or the report to standard output; errors, and questions with the way to answer them,
// to standard error.
ExitCode PrintOutcome(const graph::RunResult& result, const ExecutionArguments& arguments,
                      const LoadedSource& source, workflow::DiagnosticFormat format,
                      Console& console);

}  // namespace caisson::cli
