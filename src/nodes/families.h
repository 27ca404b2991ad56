// SPDX-License-Identifier: Apache-2.0
// The native node types, one constant each, defined in the file of its family. table.cc lists them.
#pragma once

#include "nodes/node.h"

namespace caisson::nodes {

extern const NodeType kAgentNode;
extern const NodeType kAgentReplyExtractorNode;
extern const NodeType kChunkingStrategyNode;
extern const NodeType kCodeNode;
extern const NodeType kCronTriggerNode;
extern const NodeType kDataTransformNode;
extern const NodeType kDebugNode;
extern const NodeType kDelayNode;
extern const NodeType kDiscordWebhookNode;
extern const NodeType kEmailNode;
extern const NodeType kExtractAiMessageNode;
extern const NodeType kFileUploadNode;
extern const NodeType kForLoopNode;
extern const NodeType kGraphStoreAppendMessageNode;
extern const NodeType kHtmlTextTransformNode;
extern const NodeType kHttpPollingTriggerNode;
extern const NodeType kHttpRequestNode;
extern const NodeType kHumanInputNode;
extern const NodeType kJsonProcessingNode;
extern const NodeType kLlmNode;
extern const NodeType kManualTriggerNode;
extern const NodeType kMergeNode;
extern const NodeType kNoOpTaskNode;
extern const NodeType kRssNode;
extern const NodeType kSetVariableNode;
extern const NodeType kStructuredRouterDispatchNode;
extern const NodeType kSubWorkflowNode;
extern const NodeType kTokenF1MetricsNode;
extern const NodeType kWebhookTriggerNode;

}  // namespace caisson::nodes
