// SPDX-License-Identifier: Apache-2.0
// The native node types, one constant each, defined in the file of its family. table.cc lists them.
#pragma once

#include "nodes/node.h"

namespace caisson::nodes {

extern const NodeType kAgentNode;
extern const NodeType kDataTransformNode;
extern const NodeType kDebugNode;
extern const NodeType kDelayNode;
extern const NodeType kExtractAiMessageNode;
extern const NodeType kForLoopNode;
extern const NodeType kHtmlTextTransformNode;
extern const NodeType kHumanInputNode;
extern const NodeType kJsonProcessingNode;
extern const NodeType kLlmNode;
extern const NodeType kManualTriggerNode;
extern const NodeType kMergeNode;
extern const NodeType kNoOpTaskNode;
extern const NodeType kSetVariableNode;
extern const NodeType kStructuredRouterDispatchNode;
extern const NodeType kSubWorkflowNode;

}  // namespace caisson::nodes
