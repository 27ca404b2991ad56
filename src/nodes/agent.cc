// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <utility>

#include "json/truth.h"
#include "nodes/agent_fields.h"
#include "nodes/agent_loop.h"
#include "nodes/chat_history.h"
#include "nodes/chat_messages.h"
#include "nodes/families.h"
#include "nodes/item_space.h"
#include "nodes/items.h"
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

// The conversation as the long-term store has it.
struct Memory {
  Items* items;
  ItemKey key;
  std::string field;

  Result<json::Array> Recall() const {
    CAISSON_ASSIGN(const auto stored, items->Get(key));
    return ReadHistory(stored ? &*stored : nullptr, field);
  }
  Result<void> Keep(const json::Array& turns) const {
    if (!ExtendHistory(nullptr, turns, field)) return {};  // there are none
    return items->Update(key, [&](const json::Value* stored) -> Result<json::Value> {
      auto extended = ExtendHistory(stored, turns, field);
      if (extended) return *std::move(extended);
      return stored == nullptr ? json::Value() : *stored;
    });
  }
};

// nullopt when the agent has none, or finds no key for this conversation.
Result<std::optional<Memory>> FindMemory(const Visit& visit) {
  if (!json::Truth(visit.fields[kUseGraphChatHistory])) return std::optional<Memory>();
  const json::Value& field = visit.fields[kHistoryValueField];
  if (!field.is_string()) return NodeFailed("history_value_field must be a string");
  CAISSON_ASSIGN(Items* const items, visit.host.ItemStore());
  CAISSON_ASSIGN(auto key, FindHistoryKey(visit, {visit.fields[kHistoryKeyCandidates],
                                                  visit.fields[kHistoryKeyTemplate]}));
  if (!key) return std::optional<Memory>();
  return Memory{items,
                {ItemSpace(visit.state, visit.fields[kHistoryNamespace]), *std::move(key)},
                field.as_string()};
}

Result<json::Value> RunAgent(const Visit& visit) {
  CAISSON_ASSIGN(const AgentSetup setup, ReadAgentSetup(visit));
  CAISSON_ASSIGN(const HistoryRules rules, ReadHistoryRules(visit));
  CAISSON_ASSIGN(const std::optional<Memory> memory, FindMemory(visit));
  json::Array turns = FindConversation(visit.state, rules);
  if (!memory) return RunAgentLoop(visit.host, setup, std::move(turns));
  CAISSON_ASSIGN(json::Array messages, memory->Recall());
  messages.insert(messages.end(), turns.begin(), turns.end());
  TrimConversation(messages, rules.max_messages);
  const auto sent = static_cast<std::ptrdiff_t>(messages.size());
  CAISSON_ASSIGN(json::Value update, RunAgentLoop(visit.host, setup, std::move(messages)));
  const json::Array& all = update.Find("messages")->as_array();
  turns.insert(turns.end(), all.begin() + sent, all.end());
  CAISSON_TRY(memory->Keep(turns));
  return update;
}

}  // namespace

extern constexpr NodeType kAgentNode{.name = "AgentNode",
                                     .fields = kFields,
                                     .run = RunAgent,
                                     .need = Need::kNetwork,
                                     .writes_state = true};

}  // namespace caisson::nodes
