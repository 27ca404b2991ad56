// SPDX-License-Identifier: Apache-2.0
#include "workflow/code_runtime.h"

#include <algorithm>

namespace caisson::workflow {

std::string_view CodeRuntimeName(CodeRuntime runtime) {
  return runtime == CodeRuntime::kCPython ? "cpython" : "micropython";
}

std::optional<CodeRuntime> FindCodeRuntime(std::string_view name) {
  for (const CodeRuntime runtime : {CodeRuntime::kMicroPython, CodeRuntime::kCPython}) {
    if (CodeRuntimeName(runtime) == name) return runtime;
  }
  return std::nullopt;
}

CodeRuntime CodeRuntimes::Of(std::string_view node_id) const {
  const auto own = nodes.find(node_id);
  return own == nodes.end() ? all : own->second;
}

bool CodeRuntimes::Uses(CodeRuntime runtime) const {
  return all == runtime ||
         std::ranges::any_of(nodes, [runtime](const auto& node) { return node.second == runtime; });
}

}  // namespace caisson::workflow
