// SPDX-License-Identifier: Apache-2.0
// The semantic checks on a finished IR: ids, types, entrypoints, references, depth, for the graph,
// its subgraphs and the graphs of the workflow tools in its configs. Bodies and node policy are not
// its business. Messages and their order are the peer's; all are collected.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "workflow/diagnostic.h"
#include "workflow/ir.h"

namespace caisson::workflow {

// What the compiler knows beyond the IR's text, so that one slip is reported once and in its place.
struct ValidateHints {
  // Graphs that lack nodes or edges because the statements that make them were refused: of these no
  // unknown or missing node is reported.
  std::unordered_set<const Graph*> incomplete;
  // The graph, with its spans, whose JSON form a workflow tool's "graph" member is: looked up by
  // the address of the object (`&value.as_object()`), which copies of a Value share.
  std::unordered_map<const json::Object*, std::shared_ptr<const Graph>> tool_graphs;
};

// Diagnostic::span is the span of the name in a node or edge that caused it where the graph has
// spans, else that of the node that holds the graph. Diagnostic::path names the graph ("IR subgraph
// 'x'") where there is a span, else the JSON path ("$.edges[2].source").
// Graphs of workflow tools must have been written by ToJson or have passed LoadIr's form checks;
// one that has not is reported as malformed.
void ValidateGraph(const Graph& graph, std::vector<Diagnostic>& out,
                   const ValidateHints& hints = {});

}  // namespace caisson::workflow
