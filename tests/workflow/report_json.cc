// SPDX-License-Identifier: Apache-2.0
#include "report_json.h"

#include <string>
#include <utility>

#include "workflow/ir.h"

namespace caisson::workflow {
namespace {

json::Value DiagnosticJson(const Diagnostic& diagnostic) {
  json::Object object;
  object.Set("severity", diagnostic.severity == Severity::kError ? "error" : "warning");
  object.Set("code", diagnostic.code.name);
  const SourceSpan& span = diagnostic.span;
  if (span.known()) {
    object.Set("span", std::to_string(span.line) + ":" + std::to_string(span.column) + "-" +
                           std::to_string(span.end_line) + ":" + std::to_string(span.end_column));
  }
  object.Set("message", diagnostic.message);
  if (!diagnostic.hint.empty()) object.Set("hint", diagnostic.hint);
  if (!diagnostic.path.empty()) object.Set("path", diagnostic.path);
  if (diagnostic.severity == Severity::kError) {
    if (diagnostic.peer_accepts) {
      object.Set("peer_accepts", true);
    } else {
      object.Set("peer_line", diagnostic.peer_line);
    }
  }
  return json::Value(std::move(object));
}

}  // namespace

json::Value ReportJson(const CompileResult& result) {
  json::Object report;
  report.Set("ok", result.ok());
  if (result.ok()) {
    report.Set("ir", ToJson(*result.graph));
    report.Set("index", result.index.json);
    if (!result.schemas.empty()) {
      json::Object schemas;
      for (const auto& [place, schema] : result.schemas) schemas.Set(place, schema);
      report.Set("schemas", std::move(schemas));
    }
  }
  json::Array diagnostics;
  for (const Diagnostic& diagnostic : result.diagnostics) {
    diagnostics.push_back(DiagnosticJson(diagnostic));
  }
  report.Set("diagnostics", std::move(diagnostics));
  return json::Value(std::move(report));
}

}  // namespace caisson::workflow
