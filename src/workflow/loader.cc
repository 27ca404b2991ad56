// SPDX-License-Identifier: Apache-2.0
#include "workflow/loader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "json/reader.h"
#include "workflow/ir_form.h"
#include "workflow/ir_trust.h"
#include "workflow/report.h"
#include "workflow/validate.h"

namespace caisson::workflow {

LoadResult LoadIr(std::string_view text, const CompileOptions& options) {
  auto document = json::Read(text, {.reject_duplicate_keys = true});
  if (!document) {
    Status status = std::move(document).error();
    return {nullptr,
            {{.code = status.code,
              .span = status.span,
              .message = "the IR is not usable JSON: " + std::move(status.message),
              .hint = "an IR is what 'caisson compile' writes",
              .path = "$"}}};
  }
  return LoadIr(*document, options);
}

LoadResult LoadIr(const json::Value& document, const CompileOptions& options) {
  LoadResult result;
  std::shared_ptr<const Graph> graph = ReadGraphForm(document, "$", result.diagnostics);
  if (graph == nullptr) {
    LimitDiagnostics(result.diagnostics);
    return result;
  }
  ValidateGraph(*graph, result.diagnostics);
  CheckTrust(*graph, options, result.diagnostics);
  if (options.strict) {
    for (Diagnostic& each : result.diagnostics) each.severity = Severity::kError;
  }
  const bool refused = std::ranges::any_of(
      result.diagnostics, [](const Diagnostic& each) { return each.severity == Severity::kError; });
  if (!refused) result.graph = std::move(graph);
  LimitDiagnostics(result.diagnostics);
  return result;
}

}  // namespace caisson::workflow
