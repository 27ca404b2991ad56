// SPDX-License-Identifier: Apache-2.0
// The turns of an agent: the model is asked, the tools that it calls are run, it is told what they
// gave, and so on until it calls none, or only tools whose output is the reply.
#pragma once

#include "base/status.h"
#include "json/value.h"
#include "nodes/agent_fields.h"
#include "nodes/node.h"

namespace caisson::nodes {

inline constexpr int kMaxTurns = 100;      // model calls in one visit
inline constexpr int kMaxBrokenTurns = 3;  // in a row, with calls that could not be made

// The update of the state: `messages` with what was said added, and structured_response when a
// format was asked for. Fails with model.… or as the tools do.
Result<json::Value> RunAgentLoop(Host& host, const AgentSetup& setup, json::Array messages);

}  // namespace caisson::nodes
