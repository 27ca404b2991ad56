// SPDX-License-Identifier: Apache-2.0
// How far a run has come: what its events say, folded one after the other. A run that goes on
// starts from it, so that no node that has finished is run again. It also has a JSON form, so that
// the events before some point need not be read again.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/events.h"
#include "graph/reducer.h"
#include "json/value.h"
#include "nodes/state.h"

namespace caisson::graph {

// A node that waits for an answer.
struct Question {
  std::string node_path;  // "outer/inner"
  json::Value value;      // what it asks, the payload of the interrupt
  bool operator==(const Question&) const = default;
};

// What a run has used, over all of its attempts.
struct Usage {
  std::int64_t visits = 0;  // of nodes, retries included
  std::int64_t tokens = 0;
  std::chrono::nanoseconds isolate_time{0};
};

// Of one graph. A subgraph has one of its own while its node is being visited.
struct GraphProgress {
  nodes::State state;                // with which the current step began
  Update delta;                      // what the graph had written by then
  int steps = 0;                     // completed
  std::vector<std::string> current;  // nodes of the current step, by id; empty before the first
  std::map<std::string, Update, std::less<>> finished;                   // of these
  std::map<std::string, std::vector<json::Value>, std::less<>> answers;  // to these, in order
  std::map<std::string, GraphProgress, std::less<>> inside;              // of their subgraphs
  bool has_begun() const { return steps > 0 || !current.empty(); }
  bool step_is_finished() const { return !current.empty() && finished.size() == current.size(); }
};

class Progress {
 public:
  enum class Phase : std::uint8_t { kRunning, kInterrupted, kFinished };

  // Of a run that begins with that state.
  explicit Progress(nodes::State initial) { root_.state = std::move(initial); }

  // Takes the next event. Fails with graph.event when it does not follow; the progress is not good
  // for anything then.
  Result<void> Apply(const KeptEvent& event);

  const GraphProgress& root() const { return root_; }
  std::uint64_t sequence() const { return sequence_; }  // of the last event
  Phase phase() const { return phase_; }
  // Whose answers it waits for since it was last interrupted.
  const std::vector<Question>& questions() const { return questions_; }
  const Usage& usage() const { return usage_; }
  // The run's state with everything that has finished, the current step's results included.
  nodes::State Latest() const;

  // For a run of its own that goes on from here: its events are counted anew.
  void Detach();

  json::Value ToJson() const;
  // Fails with graph.event, or graph.newer when a later version wrote it.
  static Result<Progress> FromJson(const json::Value& value);

 private:
  Progress() = default;
  GraphProgress* Find(std::string_view graph_path);
  Result<void> StartStep(const KeptEvent& event);
  Result<void> StartNode(const KeptEvent& event);
  Result<void> FinishNode(const KeptEvent& event);
  Result<void> Resume(const KeptEvent& event);
  Result<void> Finish(const KeptEvent& event);

  GraphProgress root_;
  std::uint64_t sequence_ = 0;
  Phase phase_ = Phase::kRunning;
  std::vector<Question> questions_;
  Usage usage_;
};

// The path of a node of that graph, "outer/inner"; within an id, "/" is "~1" and "~" is "~0", as in
// RFC 6901.
std::string JoinPath(std::string_view graph_path, std::string_view node_id);

// An update or a state from the JSON form that events have. Fails with graph.event.
Result<nodes::State> StateFromJson(const json::Value& value);

}  // namespace caisson::graph
