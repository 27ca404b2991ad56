// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "block/check.h"
#include "cli/answers.h"
#include "cli/block.h"
#include "cli/block_policy.h"
#include "cli/block_script.h"
#include "cli/commands.h"

namespace caisson::cli {
namespace {

using workflow::Diagnostic;
using workflow::DiagnosticFormat;

ExitCode VerdictOf(const std::vector<Diagnostic>& diagnostics) {
  for (const Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.severity == workflow::Severity::kError) return ExitCodeOf(diagnostic.code);
  }
  return ExitCode::kOk;
}

}  // namespace

ExitCode BlockCheck(const BlockCheckArguments& arguments, Console& console) {
  auto environment = ReadBlockEnvironment();
  if (!environment) return console.Complain(environment.error());
  const RuntimeWish wish = ChooseBlockRuntime(arguments.runtime, *environment);
  const auto runtime = wish.by_imports ? std::nullopt : std::optional(wish.id);

  Answers answers(arguments.format);
  Tally tally;
  ExitCode worst = ExitCode::kOk;
  const auto note = [&](ExitCode code) {
    if (worst == ExitCode::kOk) worst = code;
  };
  for (const std::string& file : arguments.files) {
    auto script = ReadBlockScript(file);
    if (!script) {
      note(console.Complain(script.error()));
      continue;
    }
    const std::vector<Diagnostic> diagnostics = ToDiagnostics(
        block::CheckScript(block::ReadScript(script->text), runtime), arguments.strict);
    tally.Count(diagnostics);
    note(VerdictOf(diagnostics));
    if (arguments.format != DiagnosticFormat::kText) {
      auto added = answers.Add(diagnostics, script->name, script->text);
      if (!added) note(console.Complain(added.error()));
    } else if (!diagnostics.empty()) {
      console.Say(workflow::Render(diagnostics, script->name, script->text, arguments.format,
                                   console.color()));
    }
  }
  if (arguments.format == DiagnosticFormat::kText) {
    console.Say(tally.ToText());
  } else {
    note(PrintJson(answers.Finish(), console));
  }
  return worst;
}

}  // namespace caisson::cli
