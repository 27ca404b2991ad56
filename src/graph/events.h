// SPDX-License-Identifier: Apache-2.0
// What a run tells about itself while it runs; docs/events.md describes the JSON form, which is
// stable. Events of one run arrive one at a time, in the order of their sequence numbers, on
// whatever thread made them. Those of a run with a journal arrive once the journal has them, so
// that nobody hears of what a crash can take back.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
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
  kRunResumed,
  kStepStarted,
  kNodeStarted,
  kNodeFinished,
  kNodeError,
  kNodeInterrupted,
  kRunInterrupted,
  kRunFinished,
};
std::string_view EventKindName(EventKind kind);  // "run_started", ...
std::optional<EventKind> FindEventKind(std::string_view name);
bool IsOfNode(EventKind kind);              // it has the members of a node
bool HasDuration(EventKind kind);           // it ends something
std::string_view DataName(EventKind kind);  // of the member that holds Event::data: "update", ...

struct Event {
  EventKind kind = EventKind::kRunStarted;
  std::uint64_t sequence = 0;           // from 1, without gaps within a run
  std::chrono::nanoseconds elapsed{0};  // since the run's start
  std::string_view run_id;
  int step = 0;                 // of the innermost graph, from 1
  std::string_view graph_path;  // "" for the root, else the ids of its subgraph nodes: "a/b"
  std::string_view node_id;
  std::string_view node_type;                       // a type of the table, "code" or "subgraph"
  int attempt = 1;                                  // of a node's events, from 1
  bool continues = false;                           // kNodeStarted: with what its subgraph had done
  std::optional<std::chrono::milliseconds> retry;   // kNodeError: it is tried again after that
  std::chrono::nanoseconds duration{0};             // of what ended
  std::int64_t tokens = 0;                          // of models, used by the node
  const std::vector<std::string>* nodes = nullptr;  // kStepStarted: the ids that run in it
  // See docs/events.md: inputs, answers, update, error, interrupt, result.
  const json::Value* data = nullptr;

  json::Value ToJson() const;
  // Appends the text of ToJson() without making it. False, with `out` as it was, when a part of it
  // has more than `most` bytes or no JSON form.
  bool AppendText(std::string& out, std::size_t most) const;
};

// An event that owns what it tells. Copies share their JSON.
struct KeptEvent {
  EventKind kind = EventKind::kRunStarted;
  std::uint64_t sequence = 0;
  std::chrono::nanoseconds elapsed{0};
  std::string run_id;
  int step = 0;
  std::string graph_path;
  std::string node_id;
  std::string node_type;
  int attempt = 1;
  bool continues = false;
  std::optional<std::chrono::milliseconds> retry;
  std::chrono::nanoseconds duration{0};
  std::int64_t tokens = 0;
  std::vector<std::string> nodes;
  std::optional<json::Value> data;

  KeptEvent() = default;
  explicit KeptEvent(const Event& event);
  Event View() const;  // good while this lives
  // From Event::ToJson()'s form; members that it does not know are ignored. Fails with graph.event,
  // naming the member.
  static Result<KeptEvent> FromJson(const json::Value& value);
};

class EventSink {
 public:
  virtual ~EventSink() = default;
  // Must not throw; the event's views are good during the call only. Slow sinks slow the run.
  virtual void OnEvent(const Event& event) = 0;
  // Nothing more may come for a while: whoever holds events back hands them on. Called at the end
  // of each step, and before anything that may take long.
  virtual void Flush() {}
};

}  // namespace caisson::graph
