// SPDX-License-Identifier: Apache-2.0
// The semantic checks on a finished IR: ids, types, entrypoints, references, depth, for the graph,
// its subgraphs and the graphs of the workflow tools in its configs. Bodies and node policy are not
// its business. Messages and their order are the peer's; all are collected.
#pragma once

#include <vector>

#include "workflow/diagnostic.h"
#include "workflow/ir.h"

namespace caisson::workflow {

// Diagnostic::path names the graph ("IR subgraph 'x'"); Diagnostic::span is the span of the node or
// edge that caused it where the graph has spans, else that of the node that holds the graph.
// Graphs of workflow tools must have been written by ToJson or have passed LoadIr's form checks;
// one that has not is reported as malformed.
void ValidateGraph(const Graph& graph, std::vector<Diagnostic>& out);

}  // namespace caisson::workflow
