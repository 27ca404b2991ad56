// SPDX-License-Identifier: Apache-2.0
// The inside of a Plan: nodes in the order of their ids, edges as indexes into them. Immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/template.h"
#include "nodes/node.h"

namespace caisson::graph {

inline constexpr std::string_view kCodeType = "code";
inline constexpr std::string_view kSubgraphType = "subgraph";

using NodeIndex = std::uint32_t;
inline constexpr NodeIndex kEndIndex = 0xffffffff;

struct Branch {
  std::string path;
  std::vector<std::string> segments;  // of path
  std::unordered_map<std::string, NodeIndex> mapping;
  std::vector<std::string> sorted_keys;
  std::optional<NodeIndex> default_target;
};

struct Toolbox;  // tool_plan.h

struct NativePart {
  const nodes::NodeType* type = nullptr;
  std::vector<Template> fields;          // index by index with type->fields
  Template steps;                        // of the field of kind kSteps, else null
  std::shared_ptr<const Toolbox> tools;  // of the field of kind kTools; may be null
};

struct CodePart {
  std::string source;
  std::vector<std::uint32_t> body_lines;  // of RunnableBody
  std::uint32_t file_line = 0;            // of the body's first line; 0: not known
  // Declared fields that have a value, in declaration order.
  std::vector<std::pair<std::string, Template>> injected;
};

// Of a node that the node host runs.
struct HostedPart {
  std::string type;
  json::Value config;           // an object, as the author wrote it
  std::vector<Template> texts;  // of it and of defaults: strings with something to resolve
};

struct PlannedGraph;

struct PlannedNode {
  enum class Kind : std::uint8_t { kNative, kHosted, kCode, kSubgraph } kind = Kind::kNative;
  std::string id;
  std::string_view type;  // NodeType::name, HostedPart::type, kCodeType or kSubgraphType
  SourceSpan span;
  // May wait or take long, so that it is worth a thread of its own beside others.
  bool blocks = false;
  NativePart native;
  CodePart code;
  std::unique_ptr<const HostedPart> hosted;
  std::shared_ptr<const PlannedGraph> graph;
  std::vector<NodeIndex> targets;  // of direct edges; ascending, unique, without END
  std::unique_ptr<const Branch> branch;
};

struct PlannedGraph {
  std::vector<PlannedNode> nodes;     // sorted by id
  std::vector<NodeIndex> first_step;  // ascending, unique
};

// A native node of `type` with that configuration, but for its tools. Fails with nodes.config,
// naming JSON paths.
Result<NativePart> PlanNative(const nodes::NodeType& type, const json::Object& config,
                              Credentials credentials);

}  // namespace caisson::graph
