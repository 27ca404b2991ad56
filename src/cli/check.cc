// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "cli/answers.h"
#include "cli/commands.h"
#include "cli/mode.h"
#include "cli/source.h"

namespace caisson::cli {
using workflow::DiagnosticFormat;

ExitCode Check(const CheckArguments& arguments, Console& console) {
  auto mode = ChooseMode(arguments.source.mode, [](const char* name) { return std::getenv(name); });
  if (!mode) return console.Complain(mode.error());
  const DiagnosticFormat format = arguments.source.format;
  Answers answers(format);
  Tally tally;
  ExitCode worst = ExitCode::kOk;
  const auto note = [&](ExitCode code) {
    if (worst == ExitCode::kOk) worst = code;
  };
  for (const std::string& file : arguments.files) {
    auto source = LoadSource(file, arguments.source);
    if (!source) {
      note(console.Complain(source.error()));
      continue;
    }
    tally.Count(source->diagnostics);
    if (format == DiagnosticFormat::kText) {
      note(ReportDiagnostics(*source, format, console));
      continue;
    }
    note(Verdict(*source));
    auto added = answers.Add(source->diagnostics, source->name, source->text);
    if (!added) note(console.Complain(added.error()));
  }
  if (format == DiagnosticFormat::kText) {
    console.Say(tally.ToText());
  } else {
    note(PrintJson(answers.Finish(), console));
  }
  return worst;
}

}  // namespace caisson::cli
