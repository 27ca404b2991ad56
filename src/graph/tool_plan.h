// SPDX-License-Identifier: Apache-2.0
// From the tool markers of a node's configuration to tools that can run.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/planned.h"
#include "json/schema.h"
#include "workflow/ir.h"

namespace caisson::graph {

struct PlannedTool {
  json::Schema schema;   // of the arguments
  bool is_bare = false;  // declares none: takes `kwargs` and drops all else, as in the peer
  std::shared_ptr<const PlannedGraph> graph;
  std::string output_path;            // trimmed; empty: the whole state
  std::vector<std::string> segments;  // of it
};

// Index by index.
struct Toolbox {
  std::vector<nodes::ToolInfo> infos;
  std::vector<PlannedTool> tools;
};

// Where the graph of a tool is, as events name it.
std::string ToolPath(std::string_view graph_path, std::string_view node_id, std::string_view tool);

using PlanGraph =
    std::function<Result<std::shared_ptr<const PlannedGraph>>(const workflow::Graph& graph)>;

// `markers` is the list of tool markers. Fails with nodes.config, naming the tool, or as `plan`
// does.
Result<std::shared_ptr<const Toolbox>> PlanTools(const json::Array& markers, const PlanGraph& plan);

}  // namespace caisson::graph
