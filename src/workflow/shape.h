// SPDX-License-Identifier: Apache-2.0
// Warnings on the shape of one graph: nodes that no path reaches, joins that run more than once,
// second conditional edges, ids that the engine refuses. Linear in the graph's size; nested graphs
// are not looked into.
#pragma once

#include <vector>

#include "workflow/diagnostic.h"
#include "workflow/ir.h"

namespace caisson::workflow {

void WarnOfShape(const Graph& graph, std::vector<Diagnostic>& out);

}  // namespace caisson::workflow
