// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/migrate.h"

#include <algorithm>
#include <utility>

#include "errors/body.h"
#include "errors/migrate.h"
#include "python/parser.h"
#include "workflow/migrate/assembly.h"
#include "workflow/migrate/builder.h"
#include "workflow/migrate/facts.h"
#include "workflow/migrate/fields.h"
#include "workflow/migrate/findings.h"
#include "workflow/migrate/source.h"
#include "workflow/migrate/wiring.h"

namespace caisson::workflow::migrate {
namespace {

// Windows line ends are put back at the end.
std::string UnixLines(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      plain += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      plain += '\n';
    }
  }
  return plain;
}
std::string WindowsLines(std::string_view text) {
  std::string windows;
  for (const char c : text) {
    if (c == '\n') windows += '\r';
    windows += c;
  }
  return windows;
}

bool SharesLines(const python::Module& module, Findings& out) {
  std::uint32_t last = 0;
  for (const python::Stmt* statement : module.body) {
    if (statement->span.line <= last) {
      out.Decide(errors::kMigrateConstruct, statement->span,
                 "two statements of the module stand on one line",
                 "write each on a line of its own");
      return true;
    }
    last = statement->span.end_line;
  }
  return false;
}

// What the compiler says of the result, at the lines that it comes from.
void AddVerdict(const CompileResult& compiled, const Lines& lines, const Source& source,
                Findings& out) {
  for (const Diagnostic& each : compiled.diagnostics) {
    SourceSpan span;
    const std::uint32_t line = each.span.line;
    if (line > 0 && line <= lines.size()) span.line = span.end_line = lines[line - 1].origin;
    if (span.known()) {
      const std::string_view text = source.LineText(span.line);
      span.column =
          static_cast<std::uint32_t>(std::min(text.find_first_not_of(" \t"), text.size()));
      span.end_column = static_cast<std::uint32_t>(text.size());
    }
    // A method that is not there fails the run, so it is no warning here.
    const bool lacks = each.code == errors::kBodyMissingMethod;
    out.Add(lacks ? Severity::kError : each.severity, each.code, span, each.message, each.hint);
  }
}

bool HasErrors(const std::vector<Diagnostic>& diagnostics) {
  return std::ranges::any_of(
      diagnostics, [](const Diagnostic& each) { return each.severity == Severity::kError; });
}

// `text` has LF line ends.
Migration MigrateText(std::string_view text, const python::Tree& tree,
                      const CompileOptions& options) {
  Findings out;
  Migration migration;
  migration.text = std::string(text);
  const python::Module& module = tree.module();
  if (SharesLines(module, out)) {
    migration.findings = out.Take();
    return migration;
  }
  Source source(text);
  source.MarkStrings(module);
  const Facts facts = ReadFacts(module);
  const Wiring wiring = ReadWiring(module, facts, out);
  const StateFields fields(facts, wiring, out);
  if (wiring.graphs.empty() || !wiring.graphs.contains(wiring.main)) {
    migration.findings = out.Take();
    return migration;
  }
  const Subject subject{source, facts, wiring, fields, out};
  const Built built = Build(subject);
  const Lines lines = Assemble(module, subject, built);
  migration.text = Join(lines);
  if (!out.decisions_left()) {
    const CompileResult compiled = Compile(migration.text, options);
    AddVerdict(compiled, lines, source, out);
    migration.done = compiled.ok() && !out.decisions_left();
  }
  migration.findings = out.Take();
  return migration;
}

}  // namespace

Migration Migrate(std::string_view source, const CompileOptions& options) {
  Migration migration;
  migration.text = std::string(source);
  CompileResult compiled = Compile(source, options);
  if (compiled.ok()) {
    migration.done = true;
    return migration;
  }
  if (source.size() > kMaxSourceBytes) {
    migration.findings = std::move(compiled.diagnostics);
    return migration;
  }
  const bool windows = source.find("\r\n") != std::string_view::npos;
  const std::string text =
      source.find('\r') == std::string_view::npos ? std::string(source) : UnixLines(source);
  const auto tree = python::Parse(text, {.is_text = true, .max_bytes = kMaxSourceBytes});
  if (!tree) {
    migration.findings = std::move(compiled.diagnostics);
    return migration;
  }
  migration = MigrateText(text, *tree, options);
  if (windows) migration.text = WindowsLines(migration.text);
  if (!migration.done && !HasErrors(migration.findings)) {
    migration.findings.push_back(
        {.code = errors::kMigrateResult,
         .message = "the result was not accepted, and no line is to blame",
         .hint = "run `caisson check` on the file, and correct what it says"});
  }
  migration.changed = migration.text != source;
  return migration;
}

}  // namespace caisson::workflow::migrate
