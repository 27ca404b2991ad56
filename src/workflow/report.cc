// SPDX-License-Identifier: Apache-2.0
#include "workflow/report.h"

#include <algorithm>
#include <string>

#include "errors/workflow.h"

namespace caisson::workflow {

namespace {
constexpr std::size_t kMaxDiagnostics = 500;
}

void LimitDiagnostics(std::vector<Diagnostic>& diagnostics) {
  if (diagnostics.size() <= kMaxDiagnostics) return;
  const auto rest = diagnostics.begin() + kMaxDiagnostics;
  const bool hides_errors = std::any_of(rest, diagnostics.end(), [](const Diagnostic& each) {
    return each.severity == Severity::kError;
  });
  const std::size_t hidden = diagnostics.size() - kMaxDiagnostics;
  diagnostics.resize(kMaxDiagnostics);
  diagnostics.push_back({.code = errors::kWorkflowTooManyDiagnostics,
                         .severity = hides_errors ? Severity::kError : Severity::kWarning,
                         .message = std::to_string(hidden) + " more diagnostics are not shown",
                         .hint = "correct those above, then check again"});
}

}  // namespace caisson::workflow
