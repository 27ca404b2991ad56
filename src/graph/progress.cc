// SPDX-License-Identifier: Apache-2.0
#include "graph/progress.h"

#include <algorithm>
#include <utility>

#include "errors/graph.h"
#include "graph/planned.h"

namespace caisson::graph {
namespace {

using nodes::StateField;

std::unexpected<Status> Wrong(const KeptEvent& event, std::string_view what) {
  return Fail(errors::kGraphEvent, "event " + std::to_string(event.sequence) + " of run " +
                                       event.run_id + " (" +
                                       std::string(EventKindName(event.kind)) +
                                       ") does not follow from those before: " + std::string(what));
}

std::string Unescape(std::string_view segment) {
  std::string text;
  for (std::size_t i = 0; i < segment.size(); ++i) {
    if (segment[i] == '~' && i + 1 < segment.size()) {
      text += segment[++i] == '1' ? '/' : '~';
    } else {
      text += segment[i];
    }
  }
  return text;
}

// The ids in a graph's path, outermost first.
std::vector<std::string> Segments(std::string_view path) {
  std::vector<std::string> segments;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    segments.push_back(Unescape(path.substr(0, end)));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return segments;
}

bool Holds(const std::vector<std::string>& ids, const std::string& id) {
  return std::ranges::find(ids, id) != ids.end();
}

// What the current step wrote becomes part of the state.
Result<void> ApplyFinished(GraphProgress& graph, nodes::State& state, Update* delta) {
  std::vector<StepWrite> writes;
  for (const std::string& id : graph.current) {
    if (const auto write = graph.finished.find(id); write != graph.finished.end()) {
      writes.push_back({write->first, &write->second});
    }
  }
  auto applied = ApplyStep(state, writes, RandomUuid, delta);
  if (applied) return {};
  return Fail(std::move(applied).error().status);
}

Result<void> EndStep(const KeptEvent& event, GraphProgress& graph) {
  if (graph.current.empty()) return {};
  if (!graph.step_is_finished()) return Wrong(event, "nodes of the step before have not finished");
  CAISSON_TRY(ApplyFinished(graph, graph.state, &graph.delta));
  ++graph.steps;
  graph.current.clear();
  graph.finished.clear();
  graph.answers.clear();
  graph.inside.clear();
  return {};
}

}  // namespace

std::string JoinPath(std::string_view graph_path, std::string_view node_id) {
  std::string path(graph_path);
  if (!path.empty()) path += '/';
  for (const char c : node_id) {
    if (c == '/') {
      path += "~1";
    } else if (c == '~') {
      path += "~0";
    } else {
      path += c;
    }
  }
  return path;
}

Result<nodes::State> StateFromJson(const json::Value& value) {
  nodes::State state;
  if (!value.is_object()) {
    return Fail(errors::kGraphEvent, "a state of a run must be an object");
  }
  for (const auto& [name, member] : value.as_object()) {
    const auto field = nodes::FindStateField(name);
    if (!field) {
      return Fail(errors::kGraphEvent, "a state of a run has an unknown field '" + name + "'");
    }
    if (*field == StateField::kNodeResults && !member.is_object()) {
      return Fail(errors::kGraphEvent, "the node_results of a run must be an object");
    }
    state.Set(*field, member);
  }
  return state;
}

GraphProgress* Progress::Find(std::string_view graph_path) {
  GraphProgress* graph = &root_;
  for (const std::string& id : Segments(graph_path)) {
    const auto inner = graph->inside.find(id);
    if (inner == graph->inside.end()) return nullptr;
    graph = &inner->second;
  }
  return graph;
}

Result<void> Progress::Apply(const KeptEvent& event) {
  if (event.sequence != sequence_ + 1) {
    return Wrong(event, "the one before has the number " + std::to_string(sequence_));
  }
  sequence_ = event.sequence;
  switch (event.kind) {
    case EventKind::kRunStarted:
      if (event.sequence != 1) return Wrong(event, "it is not the first");
      return {};
    case EventKind::kRunResumed:
      return Resume(event);
    case EventKind::kStepStarted:
      return StartStep(event);
    case EventKind::kNodeStarted:
      return StartNode(event);
    case EventKind::kNodeFinished:
      return FinishNode(event);
    case EventKind::kNodeError:
      if (event.node_type == kCodeType) usage_.isolate_time += event.duration;
      usage_.tokens += event.tokens;
      return {};
    case EventKind::kNodeInterrupted:
      questions_.push_back(
          {JoinPath(event.graph_path, event.node_id), event.data ? *event.data : json::Value()});
      return {};
    case EventKind::kRunInterrupted:
      phase_ = Phase::kInterrupted;
      return {};
    case EventKind::kRunFinished:
      return Finish(event);
  }
  return Wrong(event, "its kind is unknown");
}

Result<void> Progress::StartStep(const KeptEvent& event) {
  GraphProgress* graph = Find(event.graph_path);
  if (graph == nullptr) return Wrong(event, "its graph is not being visited");
  CAISSON_TRY(EndStep(event, *graph));
  if (event.step != graph->steps + 1 || event.nodes.empty()) {
    return Wrong(event, "step " + std::to_string(graph->steps + 1) + " was to come");
  }
  graph->current = event.nodes;
  return {};
}

Result<void> Progress::StartNode(const KeptEvent& event) {
  GraphProgress* graph = Find(event.graph_path);
  if (graph == nullptr || !Holds(graph->current, event.node_id)) {
    return Wrong(event, "its node is not part of the current step");
  }
  ++usage_.visits;
  if (event.node_type != kSubgraphType || event.continues) return {};
  GraphProgress inner;
  inner.state = graph->state;
  graph->inside.insert_or_assign(event.node_id, std::move(inner));
  return {};
}

Result<void> Progress::FinishNode(const KeptEvent& event) {
  GraphProgress* graph = Find(event.graph_path);
  if (graph == nullptr || !Holds(graph->current, event.node_id) || !event.data) {
    return Wrong(event, "its node is not part of the current step");
  }
  CAISSON_ASSIGN(Update update, StateFromJson(*event.data));
  graph->finished.insert_or_assign(event.node_id, std::move(update));
  graph->inside.erase(event.node_id);
  if (event.node_type == kCodeType) usage_.isolate_time += event.duration;
  usage_.tokens += event.tokens;
  return {};
}

Result<void> Progress::Resume(const KeptEvent& event) {
  if (!event.data) return Wrong(event, "it has no answers");
  for (const auto& [path, answer] : event.data->as_object()) {
    const std::size_t cut = path.rfind('/');
    const bool is_inner = cut != std::string::npos;
    GraphProgress* graph = Find(is_inner ? std::string_view(path).substr(0, cut) : "");
    const std::string id = Unescape(is_inner ? path.substr(cut + 1) : path);
    if (graph == nullptr || !Holds(graph->current, id)) {
      return Wrong(event, "no node '" + path + "' waits for an answer");
    }
    graph->answers[id].push_back(answer);
  }
  questions_.clear();
  phase_ = Phase::kRunning;
  return {};
}

Result<void> Progress::Finish(const KeptEvent& event) {
  phase_ = Phase::kFinished;
  const json::Value* status = event.data ? event.data->Find("status") : nullptr;
  if (status == nullptr || *status != json::Value("succeeded")) return {};
  return EndStep(event, root_);
}

nodes::State Progress::Latest() const {
  nodes::State state = root_.state;
  GraphProgress copy;
  copy.current = root_.current;
  copy.finished = root_.finished;
  // What cannot be applied is what the run fails with when it goes on.
  (void)ApplyFinished(copy, state, nullptr);
  return state;
}

void Progress::Detach() {
  sequence_ = 0;
  phase_ = Phase::kRunning;
  questions_.clear();
  usage_ = {};
}

}  // namespace caisson::graph
