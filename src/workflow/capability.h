// SPDX-License-Identifier: Apache-2.0
// What the pinned MicroPython artifact cannot do, or does otherwise than CPython, as far as an AST
// shows it: syntax that it refuses is an error (the body could never start), methods and options
// that it lacks and results that differ are warnings. The facts come from
// runtimes/micropython/capabilities.json. Knows nothing of the allowlist or of other runtimes.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "python/ast.h"
#include "python/walk.h"
#include "workflow/diagnostic.h"

namespace caisson::workflow {

// `nodes` are all nodes of `run`, breadth first, itself included.
void CheckCapabilities(const python::FunctionDef& run, std::span<const python::NodeRef> nodes,
                       std::string_view node_id, std::vector<Diagnostic>& out);

namespace internal {

// The two halves: syntax.
void CheckGuestSyntax(const python::FunctionDef& run, std::span<const python::NodeRef> nodes,
                      std::string_view node_id, std::vector<Diagnostic>& out);
// ... and use of methods, options and results.
void CheckGuestUse(std::span<const python::NodeRef> nodes, std::string_view node_id,
                   std::vector<Diagnostic>& out);

}  // namespace internal
}  // namespace caisson::workflow
