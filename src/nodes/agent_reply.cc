// SPDX-License-Identifier: Apache-2.0
// AgentReplyExtractorNode: the last thing that an assistant (or a tool that ended its turn) said.
#include <ranges>

#include "json/truth.h"
#include "nodes/families.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

enum : std::size_t { kFallback };
constexpr Field kFields[] = {
    {.name = "fallback_message",
     .kind = FieldKind::kString,
     .default_json = "\"Sorry, something went wrong. Please try again later.\""},
};

bool IsOneOf(const json::Value* value, std::string_view a, std::string_view b) {
  return value != nullptr && value->is_string() &&
         (value->as_string() == a || value->as_string() == b);
}

// The state's messages have a type; what a step of a sub-workflow left may have a role.
bool IsReply(const json::Value& message) {
  if (message.Find("type") != nullptr) return IsOneOf(message.Find("type"), "ai", "tool");
  return IsOneOf(message.Find("role"), "assistant", "tool");
}

Result<json::Value> RunAgentReply(const Visit& visit) {
  const json::Value* messages = visit.state.Find(StateField::kMessages);
  if (messages != nullptr && messages->is_array()) {
    for (const json::Value& message : std::views::reverse(messages->as_array())) {
      const json::Value* content = message.Find("content");
      if (content == nullptr || !IsReply(message) || !json::Truth(*content)) continue;
      return json::Object{{"agent_reply", PyStr(*content)}};
    }
  }
  return json::Object{{"agent_reply", visit.fields[kFallback]}};
}

}  // namespace

extern constexpr NodeType kAgentReplyExtractorNode{"AgentReplyExtractorNode", kFields,
                                                   RunAgentReply};

}  // namespace caisson::nodes
