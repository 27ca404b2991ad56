// SPDX-License-Identifier: Apache-2.0
// What an IR from outside has to prove besides its form and its references: the node policy,
// bodies, reserved keys, markers, credentials and injected fields, in all graphs that it holds.
#pragma once

#include <vector>

#include "workflow/compiler.h"
#include "workflow/diagnostic.h"
#include "workflow/ir.h"

namespace caisson::workflow {

// Appends what is wrong; Diagnostic::path says where ("$.nodes[3].body").
void CheckTrust(const Graph& graph, const CompileOptions& options, std::vector<Diagnostic>& out);

}  // namespace caisson::workflow
