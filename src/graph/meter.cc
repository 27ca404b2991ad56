// SPDX-License-Identifier: Apache-2.0
#include "errors/graph.h"
#include "graph/context.h"

namespace caisson::graph {
namespace {

std::unexpected<Status> UsedUp(const std::string& what, std::string_view member) {
  return Fail(Status{.code = errors::kGraphBudget,
                     .message = "the run has used up its budget of " + what,
                     .details = "raise budget." + std::string(member) +
                                " in the run's configuration, then resume it"});
}

}  // namespace

Result<void> Meter::CountVisit() {
  const std::int64_t visits = visits_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (!limits_.nodes || visits <= *limits_.nodes) return {};
  return UsedUp(std::to_string(*limits_.nodes) + " node visits", "nodes");
}

Result<void> Meter::CountTokens(std::int64_t tokens) {
  const std::int64_t used = tokens_.fetch_add(tokens, std::memory_order_relaxed) + tokens;
  if (!limits_.tokens || used <= *limits_.tokens) return {};
  return UsedUp(std::to_string(*limits_.tokens) + " model tokens", "tokens");
}

Result<void> Meter::CountIsolate(std::chrono::nanoseconds time) {
  const std::int64_t used =
      isolate_ns_.fetch_add(time.count(), std::memory_order_relaxed) + time.count();
  if (!limits_.isolate_time || std::chrono::nanoseconds(used) <= *limits_.isolate_time) return {};
  return UsedUp(std::to_string(limits_.isolate_time->count()) + " ms in isolates",
                "isolate_seconds");
}

}  // namespace caisson::graph
