// SPDX-License-Identifier: Apache-2.0
// A conversation: which messages of a state an agent sends, in which form an endpoint takes them,
// and what an answer becomes in the state. Messages are those of docs/events.md. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "json/value.h"
#include "nodes/chat_answer.h"
#include "nodes/state.h"

namespace caisson::nodes {

struct HistoryRules {
  std::int64_t max_messages = 30;
  std::string reset_command;
};

// The state's messages; where it has none, the turns of inputs.history and the message that the
// inputs hold in one of their usual places.
json::Array FindConversation(const State& state, const HistoryRules& rules);

// The last `most` ones, without the halves of a call and its result that the cut leaves at either
// end. 0 keeps all, and a negative number drops from the front, as a Python slice does.
void TrimConversation(json::Array& messages, std::int64_t most);

json::Value HumanMessage(std::string_view text);
// A call that could not be read stands in invalid_tool_calls.
json::Value AiMessage(const ChatAnswer& answer);
json::Value ToolMessage(const ChatCall& call, json::Value content, bool is_error);

// Of a call whose arguments are a JSON object, or nothing at all; else nullopt.
std::optional<json::Object> ReadArguments(const ChatCall& call);

// As members of "messages" in a request.
json::Array ToWire(std::string_view system_prompt, const json::Array& messages);

}  // namespace caisson::nodes
