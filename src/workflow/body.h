// SPDX-License-Identifier: Apache-2.0
// The body of a code node, made ready to run: parsed and checked again, then printed canonically
// from the AST that passed. This is the only way in which author code reaches an isolate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "workflow/compiler.h"
#include "workflow/diagnostic.h"
#include "workflow/ir.h"

namespace caisson::workflow {

struct RunnableBody {
  // Source of a module that defines exactly `def run(self, state, config):` (or an async def).
  std::string source;
  // Element i: the line within CodeNode::body that line i+1 of `source` comes from, 0 where none.
  std::vector<std::uint32_t> body_lines;
};

// Diagnostics (spans within the body's own text) when the body breaks a rule.
std::expected<RunnableBody, std::vector<Diagnostic>> PrepareBody(
    const CodeNode& node, const CompileOptions& options = {});

}  // namespace caisson::workflow
