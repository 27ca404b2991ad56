// SPDX-License-Identifier: Apache-2.0
#include "cli/source.h"

#include <algorithm>
#include <cstdlib>

#include "base/foreign_text.h"
#include "cli/files.h"
#include "cli/mode.h"
#include "workflow/loader.h"

namespace caisson::cli {
namespace {

bool LooksLikeIr(const std::string& file, std::string_view text) {
  if (file.ends_with(".json")) return true;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

void LoadAsIr(LoadedSource& source, const workflow::CompileOptions& options) {
  auto loaded = workflow::LoadIr(std::string_view(source.text), options);
  source.is_ir = true;
  source.graph = std::move(loaded.graph);
  source.diagnostics = std::move(loaded.diagnostics);
}

void LoadAsWorkflow(LoadedSource& source, const workflow::CompileOptions& options) {
  auto compiled = workflow::Compile(source.text, options);
  source.graph = std::move(compiled.graph);
  source.diagnostics = std::move(compiled.diagnostics);
  source.index = std::move(compiled.index.json);
  source.schemas = std::move(compiled.schemas);
}

}  // namespace

workflow::CompileOptions CompileOptionsOf(const SourceArguments& arguments) {
  workflow::CompileOptions options;
  options.strict = arguments.strict;
  options.runtimes = arguments.runtimes;
  return options;
}

Result<LoadedSource> LoadSource(const std::string& file, const SourceArguments& arguments) {
  LoadedSource source;
  source.name = file == "-" ? "<stdin>" : file;
  CAISSON_ASSIGN(source.text, ReadFile(file));
  const workflow::CompileOptions options = CompileOptionsOf(arguments);
  if (LooksLikeIr(file, source.text)) {
    LoadAsIr(source, options);
  } else {
    LoadAsWorkflow(source, options);
  }
  return source;
}

ExitCode Verdict(const LoadedSource& source) {
  if (source.graph != nullptr) return ExitCode::kOk;
  const auto error = std::ranges::find(source.diagnostics, workflow::Severity::kError,
                                       &workflow::Diagnostic::severity);
  return error == source.diagnostics.end() ? ExitCode::kRejected : ExitCodeOf(error->code);
}

ExitCode ReportDiagnostics(const LoadedSource& source, workflow::DiagnosticFormat format,
                           Console& console) {
  if (!source.diagnostics.empty()) {
    std::string text =
        workflow::Render(source.diagnostics, source.name, source.text, format, console.color());
    if (!text.ends_with('\n')) text += '\n';
    console.Say(format == workflow::DiagnosticFormat::kText ? text : SafeJson(text));
  }
  return Verdict(source);
}

std::expected<LoadedSource, ExitCode> OpenSource(const SourceArguments& arguments,
                                                 Console& console) {
  auto mode = ChooseMode(arguments.mode, [](const char* name) { return std::getenv(name); });
  if (!mode) return std::unexpected(console.Complain(mode.error()));
  auto source = LoadSource(arguments.file, arguments);
  if (!source) return std::unexpected(console.Complain(source.error()));
  const ExitCode verdict = ReportDiagnostics(*source, arguments.format, console);
  if (verdict != ExitCode::kOk) return std::unexpected(verdict);
  return *std::move(source);
}

}  // namespace caisson::cli
