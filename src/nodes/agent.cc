// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "nodes/agent_fields.h"
#include "nodes/agent_loop.h"
#include "nodes/chat_messages.h"
#include "nodes/families.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr auto kFields = kCommonAgentFields;

Result<HistoryRules> ReadHistoryRules(const Visit& visit) {
  HistoryRules rules;
  const json::Value& most = visit.fields[kMaxMessages];
  const json::Value& reset = visit.fields[kResetCommand];
  if (!most.is_int()) return NodeFailed("max_messages must be an integer");
  if (!reset.is_string()) return NodeFailed("reset_command must be a string");
  rules.max_messages = most.as_int();
  rules.reset_command = reset.as_string();
  return rules;
}

Result<json::Value> RunAgent(const Visit& visit) {
  CAISSON_ASSIGN(const AgentSetup setup, ReadAgentSetup(visit));
  CAISSON_ASSIGN(const HistoryRules rules, ReadHistoryRules(visit));
  return RunAgentLoop(visit.host, setup, FindConversation(visit.state, rules));
}

}  // namespace

extern constexpr NodeType kAgentNode{.name = "AgentNode",
                                     .fields = kFields,
                                     .run = RunAgent,
                                     .need = Need::kNetwork,
                                     .writes_state = true};

}  // namespace caisson::nodes
