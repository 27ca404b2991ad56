// SPDX-License-Identifier: Apache-2.0
// What a run tells about itself while it runs; docs/events.md describes the JSON form, which is
// stable. Events of one run arrive one at a time, in the order of their sequence numbers, on
// whatever thread made them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace caisson::graph {

// A line of the author's code on the way to an error.
struct AuthorFrame {
  std::uint32_t body_line = 0;  // within the node's body, from 1; 0 when not known
  std::uint32_t file_line = 0;  // within the author's file, from 1; 0 when not known
  std::string function;         // "run" for the body itself
  bool operator==(const AuthorFrame&) const = default;
};

enum class EventKind : std::uint8_t {
  kRunStarted,
  kStepStarted,
  kNodeStarted,
  kNodeFinished,
  kNodeError,
  kRunFinished,
};
std::string_view EventKindName(EventKind kind);  // "run_started", ...

struct Event {
  EventKind kind = EventKind::kRunStarted;
  std::uint64_t sequence = 0;           // from 1, without gaps within a run
  std::chrono::nanoseconds elapsed{0};  // since the run's start
  std::string_view run_id;
  int step = 0;                 // of the innermost graph, from 1
  std::string_view graph_path;  // "" for the root, else the ids of its subgraph nodes: "a/b"
  std::string_view node_id;
  std::string_view node_type;                       // a type of the table, "code" or "subgraph"
  std::chrono::nanoseconds duration{0};             // kNodeFinished, kNodeError, kRunFinished
  const std::vector<std::string>* nodes = nullptr;  // kStepStarted: the ids that run in it
  const json::Value* data = nullptr;  // see docs/events.md: inputs, update, error, result

  json::Value ToJson() const;
};

class EventSink {
 public:
  virtual ~EventSink() = default;
  // Must not throw; the event's views are good during the call only. Slow sinks slow the run.
  virtual void OnEvent(const Event& event) = 0;
};

}  // namespace caisson::graph
