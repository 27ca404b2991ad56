// SPDX-License-Identifier: Apache-2.0
// Finds every node that cannot run here, because its type is not native yet or, for a step of a
// SubWorkflowNode, does not exist at all: in the graph, its subgraphs, the graphs of its workflow
// tools and the steps of its SubWorkflowNodes.
#pragma once

#include "base/status.h"
#include "host/provider.h"
#include "nodes/node.h"
#include "workflow/ir.h"

namespace caisson::graph {

// Fails with config.unknown_step_type or graph.not_native; the message names each such node with
// its type, id, line and place. What `host` (may be null) serves runs, too, but not in the graphs
// of tools.
Result<void> RequireNative(const workflow::Graph& graph, const nodes::Table& table,
                           const host::Provider* host);

}  // namespace caisson::graph
