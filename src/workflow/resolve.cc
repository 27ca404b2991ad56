// SPDX-License-Identifier: Apache-2.0
#include "workflow/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "errors/workflow.h"
#include "workflow/report.h"
#include "workflow/shape.h"

namespace caisson::workflow {
namespace {

constexpr std::size_t kNodeOverhead = 64;
constexpr std::size_t kEdgeOverhead = 32;

class Resolver {
 public:
  explicit Resolver(Session& session) : session_(session) {}

  std::shared_ptr<FinishedGraph> Resolve(GraphDraft& draft, SourceSpan reference) {
    if (!CheckStack(draft, reference)) return nullptr;
    if (draft.finished) {
      // The peer resolves it again, on a stack that may now be too deep.
      if (stack_.size() + static_cast<std::size_t>(draft.finished->local_depth) <=
          static_cast<std::size_t>(kMaxGraphDepth)) {
        return draft.finished;
      }
      ReportDepth(reference);
      return nullptr;
    }
    if (draft.resolved) return nullptr;
    stack_.push_back(&draft);
    draft.resolving = true;
    draft.finished = Build(draft);
    draft.resolving = false;
    draft.resolved = true;
    stack_.pop_back();
    return draft.finished;
  }

 private:
  bool CheckStack(const GraphDraft& draft, SourceSpan reference) {
    if (stack_.size() >= static_cast<std::size_t>(kMaxGraphDepth)) {
      ReportDepth(reference);
      return false;
    }
    if (!draft.resolving) return true;
    std::string path;
    for (const GraphDraft* outer : stack_) path += fmt::format("{} -> ", outer->name);
    AddError(out(), errors::kWorkflowGraphCycle, reference,
             fmt::format("nested workflow graph cycle detected: {}{}", path, draft.name),
             "a graph cannot contain itself; loop by an edge back to an earlier node")
        .peer_line = 0;
    return false;
  }

  void ReportDepth(SourceSpan reference) {
    AddError(out(), errors::kWorkflowGraphTooDeep, reference,
             fmt::format("nested workflow depth exceeds the maximum of {}", kMaxGraphDepth),
             "put the inner nodes into fewer graphs")
        .peer_line = 0;
  }

  std::shared_ptr<FinishedGraph> Build(GraphDraft& draft) {
    auto finished = std::make_shared<FinishedGraph>();
    auto graph = std::make_shared<Graph>();
    bool complete = !draft.nodes_missing;
    for (NodeDraft& node : draft.nodes) {
      AddNode(node, *graph, *finished);
      if (session_.too_large) return nullptr;
    }
    graph->edges = std::move(draft.edges);
    graph->conditional_edges = std::move(draft.conditional_edges);
    graph->spans.edges = std::move(draft.spans.edges);
    graph->spans.conditional_edges = std::move(draft.spans.conditional_edges);
    graph->spans.edge_names = std::move(draft.spans.edge_names);
    graph->spans.conditional_names = std::move(draft.spans.conditional_names);
    if (!SetEntrypoint(draft, *graph)) complete = false;
    AddEdgeSizes(*graph, finished->size);
    WarnStatePaths(draft);
    if (complete && !draft.edges_missing) WarnOfShape(*graph, out());
    finished->graph = std::move(graph);
    if (!complete) session_.hints.incomplete.insert(finished->graph.get());
    return CheckSize(draft, std::move(finished));
  }

  void AddNode(NodeDraft& draft, Graph& graph, FinishedGraph& finished) {
    graph.spans.nodes.push_back(draft.span);
    graph.spans.ids.push_back(draft.id_span);
    graph.spans.bodies.push_back(draft.body_span);
    if (draft.subgraph != nullptr) {
      auto& node = std::get<SubgraphNode>(draft.node);
      const std::shared_ptr<FinishedGraph> nested = Resolve(*draft.subgraph, draft.span);
      if (nested == nullptr) {
        draft.node = BuiltinNode{node.id, "NoOpTaskNode", {}};
      } else {
        node.graph = nested->graph;
        Contain(*nested, finished);
        finished.local_depth = std::max(finished.local_depth, nested->local_depth + 1);
      }
    }
    if (auto* builtin = std::get_if<BuiltinNode>(&draft.node)) {
      if (draft.tools) SetTools(draft, *builtin, finished);
      if (draft.type != nullptr) {
        CheckConfig(*draft.type, builtin->config, draft.config_spans, builtin->id, out());
      }
    }
    finished.size.nodes += 1;
    finished.size.bytes += draft.bytes + NodeId(draft.node).size() + kNodeOverhead;
    graph.nodes.push_back(std::move(draft.node));
  }

  void SetTools(NodeDraft& draft, BuiltinNode& node, FinishedGraph& finished) {
    json::Array tools;
    for (ToolDraft& tool : *draft.tools) {
      std::shared_ptr<FinishedGraph> nested = tool.helper;
      if (tool.local != nullptr) nested = Resolve(*tool.local, tool.span);
      if (nested == nullptr) continue;  // diagnosed
      Contain(*nested, finished);
      if (tool.local != nullptr) {
        finished.local_depth = std::max(finished.local_depth, nested->local_depth + 1);
      }
      if (nested->json.is_null()) {
        nested->json = ToJson(*nested->graph);
        session_.hints.tool_graphs.emplace(&nested->json.as_object(), nested->graph);
      }
      for (const auto& [key, value] : tool.marker) {
        finished.size.bytes += key.size() + EstimateBytes(value) + kEdgeOverhead;
      }
      tool.marker.Set("graph", nested->json);
      tools.emplace_back(std::move(tool.marker));
    }
    node.config.Set("workflow_tools", std::move(tools));
  }

  static void Contain(const FinishedGraph& nested, FinishedGraph& outer) {
    outer.depth = std::max(outer.depth, nested.depth + 1);
    outer.size.nodes += nested.size.nodes;
    outer.size.bytes += nested.size.bytes;
  }

  bool SetEntrypoint(const GraphDraft& draft, Graph& graph) {
    for (std::size_t i = 0; i < graph.edges.size(); ++i) {
      if (graph.edges[i].source != kStart) continue;
      graph.entrypoint = graph.edges[i].target;
      graph.spans.entrypoint = graph.spans.edge_names[i].target;
      return true;
    }
    if (draft.entry_point) {
      graph.entrypoint = *draft.entry_point;
      graph.spans.entrypoint = draft.entry_point_span;
      return true;
    }
    if (!draft.edges_missing) {
      AddError(out(), errors::kWorkflowNoEntrypoint, draft.span,
               "workflow has no entrypoint; add an edge from START or call set_entry_point",
               fmt::format("add `{}.add_edge(START, \"<first node>\")`", draft.name))
          .peer_line = 0;
    }
    return false;
  }

  static void AddEdgeSizes(const Graph& graph, ExpandedSize& size) {
    for (const Edge& edge : graph.edges) {
      size.bytes += edge.source.size() + edge.target.size() + kEdgeOverhead;
    }
    for (const ConditionalEdge& edge : graph.conditional_edges) {
      size.bytes += edge.source.size() + edge.path.size() + 2 * kEdgeOverhead;
      for (const auto& [key, target] : edge.mapping) size.bytes += key.size() + target.size() + 6;
    }
  }

  void WarnStatePaths(const GraphDraft& draft) {
    // A node called `state` can be addressed.
    if (draft.state_paths.empty() || draft.ids.contains("state")) return;
    for (const SourceSpan& span : draft.state_paths) {
      AddWarning(out(), errors::kWorkflowStatePrefix, span,
                 "paths start at the state's own keys; one that begins with 'state.' finds nothing",
                 "leave 'state.' out: {{inputs.x}}, {{node_id.x}}");
    }
  }

  std::shared_ptr<FinishedGraph> CheckSize(const GraphDraft& draft,
                                           std::shared_ptr<FinishedGraph> finished) {
    if (finished->depth > kMaxDraftDepth) {
      AddOwnError(out(), errors::kWorkflowGraphTooDeep, draft.span,
                  fmt::format("graphs are nested deeper than {} levels", kMaxDraftDepth),
                  "put the inner nodes into fewer graphs");
      return nullptr;
    }
    if (finished->size.nodes > kMaxExpandedSize.nodes ||
        finished->size.bytes > kMaxExpandedSize.bytes) {
      AddOwnError(out(), errors::kWorkflowGraphTooLarge, draft.span,
                  fmt::format("graph '{}' is larger than {} nodes or {} MiB when its nested graphs "
                              "are written out",
                              draft.name, kMaxExpandedSize.nodes, kMaxExpandedSize.bytes >> 20),
                  "nest shared graphs less often");
      session_.too_large = true;
      return nullptr;
    }
    return finished;
  }

  std::vector<Diagnostic>& out() { return *session_.out; }

  Session& session_;
  std::vector<const GraphDraft*> stack_;
};

}  // namespace

std::size_t EstimateBytes(const json::Value& value) {
  switch (value.kind()) {
    case json::Value::Kind::kString:
      return value.as_string().size() + 3;
    case json::Value::Kind::kBigInt:
      return value.as_bigint().size() + 1;
    case json::Value::Kind::kArray: {
      std::size_t bytes = 2;
      for (const json::Value& element : value.as_array()) bytes += EstimateBytes(element);
      return bytes;
    }
    case json::Value::Kind::kObject: {
      std::size_t bytes = 2;
      for (const auto& [key, member] : value.as_object()) {
        bytes += key.size() + 4 + EstimateBytes(member);
      }
      return bytes;
    }
    default:
      return 8;
  }
}

std::shared_ptr<FinishedGraph> Resolve(GraphDraft& draft, Session& session) {
  return Resolver(session).Resolve(draft, draft.span);
}

}  // namespace caisson::workflow
