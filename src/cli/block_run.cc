// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>

#include "block/request.h"
#include "block/run.h"
#include "cli/block.h"
#include "cli/block_policy.h"
#include "cli/block_receivers.h"
#include "cli/block_runtimes.h"
#include "cli/block_script.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/interrupt.h"
#include "errors/block.h"
#include "errors/cli.h"
#include "json/reader.h"

namespace caisson::cli {
namespace {

using Argument = std::optional<std::string>;

Result<void> CheckStandardInput(const BlockRunArguments& arguments) {
  int uses = arguments.script == "-" ? 1 : 0;
  for (const Argument* input : {&arguments.documents, &arguments.sources, &arguments.artifacts,
                                &arguments.user, &arguments.tables, &arguments.options}) {
    uses += *input == Argument("-") ? 1 : 0;
  }
  if (uses <= 1) return {};
  return Fail(errors::kCliUsage, "only one of SCRIPT and the inputs can be standard input");
}

bool IsJsonText(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '[' || text[first] == '{');
}

// JSON, "@file", the name of a file, or "-".
Result<Argument> ReadInput(const Argument& argument) {
  if (!argument || IsJsonText(*argument)) return argument;
  const bool marked = argument->starts_with('@');
  CAISSON_ASSIGN(std::string text, ReadFile(marked ? argument->substr(1) : *argument));
  return Argument(std::move(text));
}

// A single document is a list of one.
void MakeList(Argument& documents) {
  if (!documents) return;
  const std::size_t first = documents->find_first_not_of(" \t\r\n");
  if (first == std::string::npos || (*documents)[first] != '{') return;
  documents->insert(0, "[").append("]");
}

Result<std::string> ReadInputs(const BlockRunArguments& arguments) {
  CAISSON_ASSIGN(Argument documents, ReadInput(arguments.documents));
  CAISSON_ASSIGN(Argument sources, ReadInput(arguments.sources));
  CAISSON_ASSIGN(const Argument artifacts, ReadInput(arguments.artifacts));
  CAISSON_ASSIGN(const Argument user, ReadInput(arguments.user));
  CAISSON_ASSIGN(const Argument tables, ReadInput(arguments.tables));
  MakeList(documents);
  MakeList(sources);
  auto inputs = block::MakeInputs({.user = user,
                                   .documents = documents,
                                   .artifacts = artifacts,
                                   .sources = sources,
                                   .tables = tables});
  if (inputs) return *std::move(inputs);
  Status status = std::move(inputs.error().status);
  // The place within the document says which option it is: $.documents is --documents.
  status.message = inputs.error().path + ": " + status.message;
  return Fail(std::move(status));
}

Result<std::string> ReadOptions(const BlockRunArguments& arguments) {
  CAISSON_ASSIGN(const Argument text, ReadInput(arguments.options));
  if (!text) return "{}";
  CAISSON_ASSIGN(const json::Value value, json::Read(*text));
  auto options = block::MakeOptions(value);
  if (options) return *std::move(options);
  Status status = std::move(options.error().status);
  status.message = options.error().path + ": " + status.message;
  return Fail(std::move(status));
}

std::unique_ptr<BlockPrinter> MakePrinter(const BlockRunArguments& arguments, Console& console) {
  switch (arguments.format) {
    case BlockRunArguments::Format::kReport:
      return std::make_unique<ReportPrinter>(console);
    case BlockRunArguments::Format::kFrames:
      return std::make_unique<FramePrinter>(console);
    default:
      return std::make_unique<ResultPrinter>(console, arguments.debug);
  }
}

// Says where in the script a refusal lies, when it has a place there.
ExitCode ComplainAbout(const Status& status, const BlockScript& script, Console& console) {
  if (!status.span.known()) return console.Complain(status);
  const workflow::Diagnostic diagnostic{
      .code = status.code, .span = status.span, .message = status.message};
  console.Say(workflow::Render({diagnostic}, script.name, script.text,
                               workflow::DiagnosticFormat::kText, console.color()));
  return ExitCodeOf(status.code);
}

void Tell(const block::BlockOutcome& outcome, const BlockScript& script, Console& console) {
  if (outcome.error) {
    console.Say(RenderBlockError(*outcome.error, script, false, console.color()));
  } else if (outcome.no_result()) {
    console.Warn("the script ended without a result; it never called done");
  }
  if (outcome.late_error) {
    console.Say(RenderBlockError(*outcome.late_error, script, true, console.color()));
  }
  const std::uint64_t ignored = outcome.dropped.done;
  if (ignored > 0) {
    console.Warn(std::to_string(ignored) + (ignored == 1 ? " call" : " calls") +
                 " of done after the final one " + (ignored == 1 ? "was" : "were") + " ignored");
  }
  if (outcome.dropped.parts > 0) {
    console.Warn("a list was not complete when the script ended; its items are left out");
  }
  if (outcome.dropped.stdout_bytes + outcome.dropped.stderr_bytes > 0) {
    console.Warn("the script printed more than is kept; --stream sets how much that is");
  }
}

// Everything that is read before anything runs.
struct Preparation {
  BlockScript script;
  block::ScriptFacts facts;
  isolate::ScriptJob job;
  RuntimeWish wish;
};

Result<Preparation> Prepare(const BlockRunArguments& arguments) {
  CAISSON_TRY(CheckStandardInput(arguments));
  CAISSON_ASSIGN(const block::Environment environment, ReadBlockEnvironment());
  Preparation prepared;
  prepared.wish = ChooseBlockRuntime(arguments.runtime.runtime, environment);
  prepared.job.limits = ChooseBlockLimits(arguments.limits, environment, prepared.wish);
  CAISSON_ASSIGN(prepared.script, ReadBlockScript(arguments.script));
  prepared.job.source = prepared.script.text;
  CAISSON_ASSIGN(prepared.job.inputs, ReadInputs(arguments));
  CAISSON_ASSIGN(prepared.job.options, ReadOptions(arguments));
  prepared.facts = block::ReadScript(prepared.script.text);
  prepared.job.imports = block::ImportNames(prepared.facts);
  return prepared;
}

}  // namespace

ExitCode BlockRun(const BlockRunArguments& arguments, Console& console) {
  auto prepared = Prepare(arguments);
  if (!prepared) return console.Complain(prepared.error());
  // The last to be destroyed: no worker may hear of a signal before we do.
  const Interrupt interrupt(console);
  const BlockRuntimes::Need need{.wish = prepared->wish,
                                 .runs = 1,
                                 .memory_bytes = prepared->job.limits.memory_bytes,
                                 .imports = prepared->job.imports};
  auto runtimes = BlockRuntimes::Open(arguments.runtime, need, console);
  if (!runtimes) return console.Complain(runtimes.error());
  auto chosen = block::ChooseRuntime((*runtimes)->set(), "", prepared->facts);
  if (!chosen) return ComplainAbout(chosen.error(), prepared->script, console);

  const auto printer = MakePrinter(arguments, console);
  const block::BlockOutcome outcome =
      block::RunBlock(*chosen->runtime, prepared->job, {}, *printer, interrupt.token());
  auto printed = printer->Finish(outcome);
  Tell(outcome, prepared->script, console);
  const ExitCode code = outcome.error ? ExitCodeOf(outcome.error->code) : ExitCode::kOk;
  if (printed) return code;
  return console.Complain(printed.error());
}

}  // namespace caisson::cli
