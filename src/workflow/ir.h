// SPDX-License-Identifier: Apache-2.0
// The frozen workflow IR (schema version 1): immutable data, no behaviour. Built by the compiler or
// by the loader, never edited. Copies are cheap: nested graphs are shared.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "json/value.h"

namespace caisson::workflow {

inline constexpr int kSchemaVersion = 1;
inline constexpr std::string_view kStateRef = "orcheo.graph.state.State";
inline constexpr std::string_view kStart = "__start__";
inline constexpr std::string_view kEnd = "__end__";
inline constexpr int kMaxGraphDepth = 32;
inline constexpr std::string_view kKindMarker = "__orcheo_ir_kind__";

struct Graph;

struct BuiltinNode {
  std::string id;
  std::string type;
  json::Object config;  // keyword arguments in call order, without name; may hold tool markers
};

struct CodeNode {
  std::string id;
  json::Object config;
  std::vector<std::string> injected;  // sorted
  std::string body;
};

struct SubgraphNode {
  std::string id;
  std::shared_ptr<const Graph> graph;
};

using Node = std::variant<BuiltinNode, CodeNode, SubgraphNode>;

struct Edge {
  std::string source;
  std::string target;
};

struct ConditionalEdge {
  std::string source;
  std::string path;
  std::vector<std::pair<std::string, std::string>> mapping;  // in source order, keys unique
  std::optional<std::string> default_target;
};

// Where the names in an edge stand; unknown for those that its statement does not write.
struct EdgeNames {
  SourceSpan source;
  SourceSpan target;
};
struct ConditionalNames {
  SourceSpan source;
  std::vector<SourceSpan> targets;  // index by index with ConditionalEdge::mapping
  SourceSpan default_target;
};

// Where the elements of a Graph stand in the author's file, index by index; empty vectors for an IR
// that came as JSON.
struct GraphSpans {
  SourceSpan entrypoint;  // of the name that sets it
  // Of whole statements.
  std::vector<SourceSpan> nodes;
  std::vector<SourceSpan> edges;
  std::vector<SourceSpan> conditional_edges;
  // Of names.
  std::vector<SourceSpan> ids;
  std::vector<EdgeNames> edge_names;
  std::vector<ConditionalNames> conditional_names;
  // By node: line L of a code node's body is line bodies[i].line + L - 1 of the file. Unknown (or
  // the whole vector empty) where body and file do not run line by line, and for other nodes.
  std::vector<SourceSpan> bodies;
};

struct Graph {
  std::string state_ref{kStateRef};
  std::string entrypoint;
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::vector<ConditionalEdge> conditional_edges;
  GraphSpans spans;  // not part of the IR's JSON or identity
};

const std::string& NodeId(const Node& node);

// The IR's JSON in the dump order of the format: every field, defaults included.
json::Value ToJson(const Graph& graph);

// Compact UTF-8 JSON in dump order: the bytes whose SHA-256 (lower-case hex) is the content id.
Result<std::string> CanonicalBytes(const Graph& graph);
Result<std::string> ContentId(const Graph& graph);

}  // namespace caisson::workflow
