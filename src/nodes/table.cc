// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "nodes/families.h"
#include "nodes/node.h"

namespace caisson::nodes {

const NodeType* Table::Find(std::string_view name) const {
  const auto found =
      std::ranges::lower_bound(types_, name, {}, [](const NodeType* type) { return type->name; });
  return found != types_.end() && (*found)->name == name ? *found : nullptr;
}

const Table& BuiltinNodes() {
  static constexpr const NodeType* kTypes[] = {
      &kAgentNode,
      &kDataTransformNode,
      &kDebugNode,
      &kDelayNode,
      &kExtractAiMessageNode,
      &kForLoopNode,
      &kHtmlTextTransformNode,
      &kHumanInputNode,
      &kJsonProcessingNode,
      &kLlmNode,
      &kManualTriggerNode,
      &kMergeNode,
      &kNoOpTaskNode,
      &kSetVariableNode,
      &kStructuredRouterDispatchNode,
      &kSubWorkflowNode,
  };
  static const Table table(kTypes);
  return table;
}

}  // namespace caisson::nodes
