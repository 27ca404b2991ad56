// SPDX-License-Identifier: Apache-2.0
// Runs the tools that a model calls: each is a graph of its own with a state of its own, of which
// the agent's run sees the output. What happens in them is told as progress, not as events.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graph/context.h"
#include "graph/tool_plan.h"
#include "nodes/node.h"

namespace caisson::graph {

// The agent whose tools they are.
struct Agent {
  std::string_view graph_path;
  std::string_view node_id;
  const nodes::State& state;
};

// See Host::RunTools. `tell` is given progress, from any thread.
Result<std::vector<nodes::ToolOutcome>> RunTools(RunContext& context, VisitScope& visit,
                                                 const Toolbox& box, const Agent& agent,
                                                 std::span<const nodes::ToolRun> runs,
                                                 const std::function<void(json::Value)>& tell);

// What output_path selects of a tool's final state. Fails with nodes.failed in the peer's words.
Result<json::Value> SelectOutput(const json::Value& state, const PlannedTool& tool,
                                 const std::string& name);

}  // namespace caisson::graph
