// SPDX-License-Identifier: Apache-2.0
#include "graph/stream.h"

#include <array>

namespace caisson::graph {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"updates", "values", "messages", "debug"};

json::Object Line(StreamMode mode) { return {{"stream", kNames[static_cast<std::size_t>(mode)]}}; }

bool IsOfRoot(const Event& event, EventKind kind) {
  return event.kind == kind && event.graph_path.empty();
}

}  // namespace

std::optional<StreamMode> FindStreamMode(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<StreamMode>(i);
  }
  return std::nullopt;
}

void Stream::OnEvent(const Event& event) {
  if (modes_.contains(StreamMode::kDebug)) {
    json::Object line = Line(StreamMode::kDebug);
    line.Set("event", event.ToJson());
    take_(line);
  }
  if (modes_.contains(StreamMode::kUpdates) && IsOfRoot(event, EventKind::kNodeFinished)) {
    json::Object line = Line(StreamMode::kUpdates);
    line.Set("sequence", event.sequence);
    line.Set("step", event.step);
    line.Set("node", event.node_id);
    line.Set("data", *event.data);
    take_(line);
  }
  if (modes_.contains(StreamMode::kValues)) Values(event);
}

void Stream::Values(const Event& event) {
  // What does not follow is not this stream's to report.
  (void)progress_.Apply(KeptEvent(event));
  const json::Value* status = event.kind == EventKind::kRunFinished && event.data != nullptr
                                  ? event.data->Find("status")
                                  : nullptr;
  const bool has_succeeded = status != nullptr && *status == json::Value("succeeded");
  if (!IsOfRoot(event, EventKind::kStepStarted) && !has_succeeded) return;
  json::Object line = Line(StreamMode::kValues);
  line.Set("sequence", event.sequence);
  line.Set("step", progress_.root().steps);
  line.Set("data", progress_.root().state.ToJson());
  take_(line);
}

void Stream::OnDelta(const Delta& delta) {
  const bool is_message = delta.kind == nodes::DeltaKind::kMessage;
  if (!modes_.contains(StreamMode::kDebug) &&
      !(is_message && modes_.contains(StreamMode::kMessages))) {
    return;
  }
  json::Object line = Line(is_message ? StreamMode::kMessages : StreamMode::kDebug);
  line.Set(is_message ? "data" : "event", delta.ToJson());
  take_(line);
}

}  // namespace caisson::graph
