// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/findings.h"

#include <algorithm>
#include <tuple>

namespace caisson::workflow::migrate {

void Findings::Add(Severity severity, ErrorCode code, SourceSpan span, std::string message,
                   std::string hint) {
  const bool known = std::ranges::any_of(
      found_, [&](const Diagnostic& each) { return each.span == span && each.message == message; });
  if (known) return;
  decisions_ |= severity == Severity::kError;
  found_.push_back({.code = code,
                    .severity = severity,
                    .span = span,
                    .message = std::move(message),
                    .hint = std::move(hint)});
}

std::vector<Diagnostic> Findings::Take() {
  std::ranges::stable_sort(found_, [](const Diagnostic& a, const Diagnostic& b) {
    const auto place = [](const Diagnostic& each) {
      return std::tuple(!each.span.known(), each.span.line, each.span.column);
    };
    return place(a) < place(b);
  });
  return std::move(found_);
}

}  // namespace caisson::workflow::migrate
