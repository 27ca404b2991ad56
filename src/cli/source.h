// SPDX-License-Identifier: Apache-2.0
// A workflow file or an IR, read and checked, with what there is to say about it. A name that ends
// in .json, or a text that begins with '{', is an IR: no workflow file begins so.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/arguments.h"
#include "cli/console.h"
#include "json/value.h"
#include "workflow/compiler.h"
#include "workflow/ir.h"

namespace caisson::cli {

struct LoadedSource {
  std::string name;  // as messages show it
  std::string text;
  bool is_ir = false;
  std::shared_ptr<const workflow::Graph> graph;  // null when it was refused
  std::vector<workflow::Diagnostic> diagnostics;
  json::Value index;  // of a workflow file; null for an IR
  std::vector<std::pair<std::string, json::Value>> schemas;
};

workflow::CompileOptions CompileOptionsOf(const SourceArguments& arguments);

// Fails with cli.file_unreadable only; refusals are diagnostics.
Result<LoadedSource> LoadSource(const std::string& file, const SourceArguments& arguments);

// Writes the diagnostics, if any, to standard error. kOk when the source was accepted.
ExitCode ReportDiagnostics(const LoadedSource& source, workflow::DiagnosticFormat format,
                           Console& console);

// What the diagnostics come to: kOk, or the exit code of the first error.
ExitCode Verdict(const LoadedSource& source);

// The usual opening of a subcommand: mode, file, diagnostics. On failure everything has been said.
std::expected<LoadedSource, ExitCode> OpenSource(const SourceArguments& arguments,
                                                 Console& console);

}  // namespace caisson::cli
