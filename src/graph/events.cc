// SPDX-License-Identifier: Apache-2.0
#include "graph/events.h"

#include <array>

namespace caisson::graph {
namespace {

constexpr std::array<std::string_view, 6> kNames = {
    "run_started", "step_started", "node_started", "node_finished", "node_error", "run_finished"};

double Milliseconds(std::chrono::nanoseconds duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

// The member that holds Event::data.
std::string_view DataName(EventKind kind) {
  switch (kind) {
    case EventKind::kRunStarted:
      return "inputs";
    case EventKind::kNodeFinished:
      return "update";
    case EventKind::kNodeError:
      return "error";
    default:
      return "result";
  }
}

bool IsOfNode(EventKind kind) {
  return kind == EventKind::kNodeStarted || kind == EventKind::kNodeFinished ||
         kind == EventKind::kNodeError;
}

}  // namespace

std::string_view EventKindName(EventKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

json::Value Event::ToJson() const {
  json::Object object{{"event", EventKindName(kind)},
                      {"sequence", sequence},
                      {"elapsed_ms", Milliseconds(elapsed)},
                      {"run_id", run_id}};
  if (kind == EventKind::kStepStarted || IsOfNode(kind)) {
    object.Set("step", step);
    object.Set("graph", graph_path);
  }
  if (nodes != nullptr) {
    json::Array ids;
    for (const std::string& id : *nodes) ids.emplace_back(id);
    object.Set("nodes", std::move(ids));
  }
  if (IsOfNode(kind)) {
    object.Set("node", node_id);
    object.Set("type", node_type);
  }
  if (kind == EventKind::kNodeFinished || kind == EventKind::kNodeError ||
      kind == EventKind::kRunFinished) {
    object.Set("duration_ms", Milliseconds(duration));
  }
  if (data != nullptr) object.Set(DataName(kind), *data);
  return object;
}

}  // namespace caisson::graph
