// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "errors/graph.h"
#include "graph/events.h"

namespace caisson::graph {
namespace {

constexpr double kMostMilliseconds = 1e12;  // some thirty years

std::unexpected<Status> Wrong(std::string_view member, std::string_view what) {
  return Fail(errors::kGraphEvent,
              "an event of a run: its member '" + std::string(member) + "' " + std::string(what));
}

Result<std::string> Text(const json::Value& event, std::string_view member) {
  const json::Value* value = event.Find(member);
  if (value != nullptr && value->is_string()) return value->as_string();
  return Wrong(member, "must be a text");
}

Result<std::int64_t> Count(const json::Value& event, std::string_view member,
                           std::int64_t maximum) {
  const json::Value* value = event.Find(member);
  if (value != nullptr && value->is_int() && value->as_int() >= 0 && value->as_int() <= maximum) {
    return value->as_int();
  }
  return Wrong(member, "must be an integer from 0 to " + std::to_string(maximum));
}

Result<std::chrono::nanoseconds> Duration(const json::Value& event, std::string_view member) {
  const json::Value* value = event.Find(member);
  const double milliseconds = value != nullptr && value->is_number() ? value->ToDouble() : -1;
  if (milliseconds >= 0 && milliseconds <= kMostMilliseconds) {
    return std::chrono::nanoseconds(std::llround(milliseconds * 1e6));
  }
  return Wrong(member, "must be a number of milliseconds");
}

Result<void> ReadNode(const json::Value& event, KeptEvent& kept) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  CAISSON_ASSIGN(kept.node_id, Text(event, "node"));
  CAISSON_ASSIGN(kept.node_type, Text(event, "type"));
  if (event.Find("attempt") != nullptr) {
    CAISSON_ASSIGN(const std::int64_t attempt, Count(event, "attempt", kMost));
    kept.attempt = static_cast<int>(attempt);
  }
  kept.continues = event.Find("continues") != nullptr;
  if (event.Find("tokens") != nullptr) {
    CAISSON_ASSIGN(kept.tokens, Count(event, "tokens", std::int64_t{1} << 53));
  }
  if (event.Find("retry_in_ms") != nullptr) {
    CAISSON_ASSIGN(const std::int64_t wait, Count(event, "retry_in_ms", kMost));
    kept.retry = std::chrono::milliseconds(wait);
  }
  return {};
}

Result<std::vector<std::string>> Nodes(const json::Value& event) {
  const json::Value* value = event.Find("nodes");
  if (value == nullptr || !value->is_array()) return Wrong("nodes", "must be a list of texts");
  std::vector<std::string> nodes;
  for (const json::Value& id : value->as_array()) {
    if (!id.is_string()) return Wrong("nodes", "must be a list of texts");
    nodes.push_back(id.as_string());
  }
  return nodes;
}

// What the engine itself relies on when it reads an event back.
Result<void> CheckData(const KeptEvent& event) {
  const bool needs_object = event.kind == EventKind::kNodeFinished ||
                            event.kind == EventKind::kRunResumed ||
                            event.kind == EventKind::kRunFinished;
  if (!needs_object || (event.data && event.data->is_object())) return {};
  return Wrong(DataName(event.kind), "must be an object");
}

}  // namespace

Result<KeptEvent> KeptEvent::FromJson(const json::Value& value) {
  KeptEvent event;
  if (!value.is_object()) return Fail(errors::kGraphEvent, "an event of a run must be an object");
  CAISSON_ASSIGN(const std::string name, Text(value, "event"));
  const auto kind = FindEventKind(name);
  if (!kind) return Wrong("event", "names no event that is known: '" + name.substr(0, 40) + "'");
  event.kind = *kind;
  CAISSON_ASSIGN(const std::int64_t sequence,
                 Count(value, "sequence", std::numeric_limits<std::int64_t>::max()));
  event.sequence = static_cast<std::uint64_t>(sequence);
  CAISSON_ASSIGN(event.elapsed, Duration(value, "elapsed_ms"));
  CAISSON_ASSIGN(event.run_id, Text(value, "run_id"));
  if (IsOfNode(event.kind) || event.kind == EventKind::kStepStarted) {
    CAISSON_ASSIGN(const std::int64_t step, Count(value, "step", std::numeric_limits<int>::max()));
    event.step = static_cast<int>(step);
    CAISSON_ASSIGN(event.graph_path, Text(value, "graph"));
  }
  if (event.kind == EventKind::kStepStarted) {
    CAISSON_ASSIGN(event.nodes, Nodes(value));
  }
  if (IsOfNode(event.kind)) CAISSON_TRY(ReadNode(value, event));
  if (value.Find("duration_ms") != nullptr) {
    CAISSON_ASSIGN(event.duration, Duration(value, "duration_ms"));
  }
  if (const json::Value* data = value.Find(DataName(event.kind))) event.data = *data;
  CAISSON_TRY(CheckData(event));
  return event;
}

}  // namespace caisson::graph
