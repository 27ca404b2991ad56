// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/migrate.h"

#include <unistd.h>

#include "base/foreign_text.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/source.h"
#include "json/reader.h"
#include "workflow/migrate/diff.h"

namespace caisson::cli {
namespace {

using workflow::DiagnosticFormat;
using workflow::migrate::Migration;

// Replacements of whole lines of the source, from top to bottom.
json::Array EditsOf(std::string_view before_text, std::string_view after_text) {
  const auto before = workflow::migrate::SplitLines(before_text);
  const auto after = workflow::migrate::SplitLines(after_text);
  json::Array edits;
  for (const auto& change : workflow::migrate::Changes(before, after)) {
    std::string text;
    for (std::size_t i = 0; i < change.added; ++i) {
      text.append(after[change.after + i]).append(1, '\n');
    }
    edits.push_back(json::Object{{"line", static_cast<std::int64_t>(change.before + 1)},
                                 {"removed", static_cast<std::int64_t>(change.removed)},
                                 {"text", std::move(text)}});
  }
  return edits;
}

ExitCode PrintDocument(const Migration& migration, const std::string& name, const std::string& text,
                       Console& console) {
  const std::string findings =
      workflow::Render(migration.findings, name, text, DiagnosticFormat::kJson);
  auto decisions = json::Read(findings);
  if (!decisions) return console.Complain(decisions.error());
  return PrintJson(json::Object{{"done", migration.done},
                                {"changed", migration.changed},
                                {"result", migration.text},
                                {"edits", EditsOf(text, migration.text)},
                                {"findings", *std::move(decisions)}},
                   console);
}

void SayFindings(const Migration& migration, const std::string& name, const std::string& text,
                 Console& console) {
  if (migration.findings.empty()) return;
  std::string said =
      workflow::Render(migration.findings, name, text, DiagnosticFormat::kText, console.color());
  if (!said.ends_with('\n')) said += '\n';
  console.Say(said);
}

ExitCode PrintDiff(const Migration& migration, const std::string& name, const std::string& text,
                   Console& console) {
  const bool shown = isatty(STDOUT_FILENO) == 1;
  const std::string before = shown ? ShowForeign(text, "", kMaxInputBytes) : text;
  const std::string after =
      shown ? ShowForeign(migration.text, "", kMaxInputBytes) : migration.text;
  return PrintText(workflow::migrate::UnifiedDiff(before, after, name, shown && console.color()),
                   console);
}

ExitCode WriteResult(const MigrateArguments& arguments, const Migration& migration,
                     Console& console) {
  if (arguments.in_place) {
    if (!migration.done || !migration.changed) return ExitCode::kOk;
    auto written = WriteFile(arguments.file, migration.text);
    return written ? ExitCode::kOk : console.Complain(written.error());
  }
  if (*arguments.output == "-") return PrintText(migration.text, console);
  auto written = WriteFile(*arguments.output, migration.text);
  return written ? ExitCode::kOk : console.Complain(written.error());
}

}  // namespace

ExitCode MigrateWorkflow(const MigrateArguments& arguments, Console& console) {
  auto text = ReadFile(arguments.file);
  if (!text) return console.Complain(text.error());
  const std::string name = arguments.file == "-" ? "<stdin>" : arguments.file;
  const Migration migration = workflow::migrate::Migrate(*text);
  ExitCode printed = ExitCode::kOk;
  if (arguments.json) {
    printed = PrintDocument(migration, name, *text, console);
  } else {
    SayFindings(migration, name, *text, console);
  }
  if (arguments.in_place || arguments.output) {
    const ExitCode written = WriteResult(arguments, migration, console);
    if (written != ExitCode::kOk) return written;
  } else if (!arguments.json && !arguments.check) {
    printed = PrintDiff(migration, name, *text, console);
  }
  if (printed != ExitCode::kOk) return printed;
  return migration.done ? ExitCode::kOk : ExitCode::kRejected;
}

}  // namespace caisson::cli
