// SPDX-License-Identifier: Apache-2.0
#include "graph/events.h"

#include <algorithm>
#include <array>

namespace caisson::graph {
namespace {

constexpr std::array<std::string_view, 9> kNames = {
    "run_started", "run_resumed",      "step_started",    "node_started", "node_finished",
    "node_error",  "node_interrupted", "run_interrupted", "run_finished"};

double Milliseconds(std::chrono::nanoseconds duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

}  // namespace

std::string_view DataName(EventKind kind) {
  switch (kind) {
    case EventKind::kRunStarted:
      return "inputs";
    case EventKind::kRunResumed:
      return "answers";
    case EventKind::kNodeFinished:
      return "update";
    case EventKind::kNodeError:
      return "error";
    case EventKind::kNodeInterrupted:
      return "interrupt";
    default:
      return "result";
  }
}

bool IsOfNode(EventKind kind) {
  return kind == EventKind::kNodeStarted || kind == EventKind::kNodeFinished ||
         kind == EventKind::kNodeError || kind == EventKind::kNodeInterrupted;
}

bool HasDuration(EventKind kind) {
  return kind == EventKind::kNodeFinished || kind == EventKind::kNodeError ||
         kind == EventKind::kNodeInterrupted || kind == EventKind::kRunInterrupted ||
         kind == EventKind::kRunFinished;
}

std::string_view EventKindName(EventKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::optional<EventKind> FindEventKind(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<EventKind>(found - kNames.begin());
}

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
    if (attempt != 1) object.Set("attempt", attempt);
    if (continues) object.Set("continues", true);
    if (retry) object.Set("retry_in_ms", static_cast<std::int64_t>(retry->count()));
  }
  if (tokens != 0) object.Set("tokens", tokens);
  if (HasDuration(kind)) object.Set("duration_ms", Milliseconds(duration));
  if (data != nullptr) object.Set(DataName(kind), *data);
  return object;
}

KeptEvent::KeptEvent(const Event& event)
    : kind(event.kind),
      sequence(event.sequence),
      elapsed(event.elapsed),
      run_id(event.run_id),
      step(event.step),
      graph_path(event.graph_path),
      node_id(event.node_id),
      node_type(event.node_type),
      attempt(event.attempt),
      continues(event.continues),
      retry(event.retry),
      duration(event.duration),
      tokens(event.tokens) {
  if (event.nodes != nullptr) nodes = *event.nodes;
  if (event.data != nullptr) data = *event.data;
}

Event KeptEvent::View() const {
  Event event;
  event.kind = kind;
  event.sequence = sequence;
  event.elapsed = elapsed;
  event.run_id = run_id;
  event.step = step;
  event.graph_path = graph_path;
  event.node_id = node_id;
  event.node_type = node_type;
  event.attempt = attempt;
  event.continues = continues;
  event.retry = retry;
  event.duration = duration;
  event.tokens = tokens;
  if (kind == EventKind::kStepStarted) event.nodes = &nodes;
  if (data) event.data = &*data;
  return event;
}

}  // namespace caisson::graph
