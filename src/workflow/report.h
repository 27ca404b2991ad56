// SPDX-License-Identifier: Apache-2.0
// Appends diagnostics to a list, and bounds the list. Internal to the compiler.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "workflow/diagnostic.h"

namespace caisson::workflow {

// An error that the peer reports as well, at the line where `span` begins. The reference is good
// until the next diagnostic is added.
inline Diagnostic& AddError(std::vector<Diagnostic>& out, ErrorCode code, SourceSpan span,
                            std::string message, std::string hint = {}) {
  out.push_back({.code = code,
                 .span = span,
                 .message = std::move(message),
                 .hint = std::move(hint),
                 .peer_line = span.line});
  return out.back();
}

// An error that only we report.
inline Diagnostic& AddOwnError(std::vector<Diagnostic>& out, ErrorCode code, SourceSpan span,
                               std::string message, std::string hint = {}) {
  Diagnostic& added = AddError(out, code, span, std::move(message), std::move(hint));
  added.peer_line = 0;
  added.peer_accepts = true;
  return added;
}

inline Diagnostic& AddWarning(std::vector<Diagnostic>& out, ErrorCode code, SourceSpan span,
                              std::string message, std::string hint = {}) {
  Diagnostic& added = AddOwnError(out, code, span, std::move(message), std::move(hint));
  added.severity = Severity::kWarning;
  return added;
}

// Keeps the first few hundred and says how many more there were, so that a file of nothing but
// mistakes costs no more to show than one with some.
void LimitDiagnostics(std::vector<Diagnostic>& diagnostics);

}  // namespace caisson::workflow
