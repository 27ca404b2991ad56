// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/findings.h"

#include <algorithm>
#include <cstdint>
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
  // Ends in the index, so that equal places keep their order. (std::stable_sort warns under clang.)
  std::vector<std::tuple<bool, std::uint32_t, std::uint32_t, std::size_t>> order;
  for (std::size_t i = 0; i < found_.size(); ++i) {
    const SourceSpan& span = found_[i].span;
    order.emplace_back(!span.known(), span.line, span.column, i);
  }
  std::ranges::sort(order);
  std::vector<Diagnostic> sorted;
  for (const auto& place : order) sorted.push_back(std::move(found_[std::get<3>(place)]));
  return sorted;
}

}  // namespace caisson::workflow::migrate
