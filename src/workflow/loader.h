// SPDX-License-Identifier: Apache-2.0
// An IR that comes as JSON (a file, the network, our own store) is checked as if it were hostile:
// its form, the references of its graph, the node policy, and every body.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "workflow/compiler.h"
#include "workflow/diagnostic.h"
#include "workflow/ir.h"

namespace caisson::workflow {

struct LoadResult {
  std::shared_ptr<const Graph> graph;   // null when there are errors, not when there are warnings
  std::vector<Diagnostic> diagnostics;  // Diagnostic::path says where ("$.nodes[3].body")
};

LoadResult LoadIr(std::string_view text, const CompileOptions& options = {});
LoadResult LoadIr(const json::Value& document, const CompileOptions& options = {});

}  // namespace caisson::workflow
