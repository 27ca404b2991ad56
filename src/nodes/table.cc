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
      &kAgentReplyExtractorNode,
      &kChunkingStrategyNode,
      &kCodeNode,
      &kCronTriggerNode,
      &kDataTransformNode,
      &kDebugNode,
      &kDelayNode,
      &kDiscordWebhookNode,
      &kEmailNode,
      &kExtractAiMessageNode,
      &kFileUploadNode,
      &kForLoopNode,
      &kGraphStoreAppendMessageNode,
      &kHtmlTextTransformNode,
      &kHttpPollingTriggerNode,
      &kHttpRequestNode,
      &kHumanInputNode,
      &kJsonProcessingNode,
      &kLlmNode,
      &kManualTriggerNode,
      &kMergeNode,
      &kNoOpTaskNode,
      &kRssNode,
      &kSetVariableNode,
      &kStructuredRouterDispatchNode,
      &kSubWorkflowNode,
      &kTokenF1MetricsNode,
      &kWebhookTriggerNode,
  };
  static const Table table(kTypes);
  return table;
}

}  // namespace caisson::nodes
