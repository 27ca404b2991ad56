// SPDX-License-Identifier: Apache-2.0
// Graphs as a builder assembles them, before references between them are resolved. Internal to the
// compiler.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json/value.h"
#include "workflow/ir.h"
#include "workflow/registry.h"

namespace caisson::workflow {

// What a graph becomes when everything that it contains is written out. Sums saturate.
struct ExpandedSize {
  std::uint64_t nodes = 0;
  std::uint64_t bytes = 0;
};
inline constexpr ExpandedSize kMaxExpandedSize{.nodes = 250'000, .bytes = 64u << 20};
// Of graphs in graphs, tools included. What exceeds it would only fail the IR's limit of 32.
inline constexpr int kMaxDraftDepth = 64;

// A rough count of the bytes of a value's JSON text.
std::size_t EstimateBytes(const json::Value& value);

// A graph whose references are resolved.
struct FinishedGraph {
  std::shared_ptr<const Graph> graph;
  json::Value json;  // its IR; made when a workflow tool needs it
  ExpandedSize size;
  int depth = 1;        // levels of graphs, itself and those of tools included
  int local_depth = 1;  // levels of graphs of the same builder
};

struct GraphDraft;

struct ToolDraft {
  json::Object marker;                    // its "graph" is filled in on resolution
  GraphDraft* local = nullptr;            // a graph variable of the same builder, or
  std::shared_ptr<FinishedGraph> helper;  // what a helper builder returned; both null: refused
  SourceSpan span;
};

struct NodeDraft {
  Node node;  // a refused node is a placeholder, so that edges still find its id
  SourceSpan span;
  SourceSpan id_span;
  ConfigSpans config_spans;
  SourceSpan body_span;  // of a code node whose body runs line by line with the file
  GraphDraft* subgraph = nullptr;
  const NodeType* type = nullptr;               // of a built-in node
  std::optional<std::vector<ToolDraft>> tools;  // of the config's workflow_tools
  std::size_t bytes = 0;
};

struct GraphDraft {
  std::string_view name;
  SourceSpan span;
  std::vector<NodeDraft> nodes;
  std::unordered_map<std::string_view, SourceSpan> ids;
  std::vector<Edge> edges;
  std::vector<ConditionalEdge> conditional_edges;
  GraphSpans spans;  // of the edges
  std::optional<std::string> entry_point;
  SourceSpan entry_point_span;
  std::vector<SourceSpan> state_paths;  // strings with paths that begin with `state.`
  // Statements that would have added some were refused.
  bool nodes_missing = false;
  bool edges_missing = false;

  std::shared_ptr<FinishedGraph> finished;
  bool resolving = false;
  bool resolved = false;  // finished, or refused for good
};

}  // namespace caisson::workflow
