// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>

#include "nodes/agent_fields.h"
#include "nodes/agent_loop.h"
#include "nodes/chat_messages.h"
#include "nodes/families.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

enum : std::size_t {
  kInputText = kAgentFields,
  kInstruction,
  kUserMessage,
  kDraftReply,
  kFieldCount
};

constexpr std::array<Field, kFieldCount> AllFields() {
  std::array<Field, kFieldCount> fields;
  std::ranges::copy(kCommonAgentFields, fields.begin());
  constexpr std::array<std::string_view, 4> kOwn{"input_text", "instruction", "user_message",
                                                 "draft_reply"};
  for (std::size_t i = 0; i < kOwn.size(); ++i) {
    fields[kAgentFields + i] = {.name = kOwn[i], .kind = FieldKind::kString, .nullable = true};
  }
  return fields;
}
constexpr auto kFields = AllFields();

// What a template gave that is no text counts as none.
std::string Text(const json::Value& value) {
  return value.is_string() ? std::string(Strip(value.as_string())) : std::string();
}

// The one message that is sent; empty: none.
std::string Prompt(const Visit& visit) {
  const std::string draft = Text(visit.fields[kDraftReply]);
  const std::string base = draft.empty() ? Text(visit.fields[kInputText]) : draft;
  if (base.empty()) return {};
  const std::string user = Text(visit.fields[kUserMessage]);
  const std::string text =
      user.empty() ? base : "User message:\n" + user + "\n\nDraft reply:\n" + base;
  const std::string instruction = Text(visit.fields[kInstruction]);
  return instruction.empty() ? text : "Instruction:\n" + instruction + "\n\nText:\n" + text;
}

Result<json::Value> RunLlm(const Visit& visit) {
  const std::string prompt = Prompt(visit);
  if (prompt.empty()) return json::Value(json::Object{{"messages", json::Array()}});
  CAISSON_ASSIGN(const AgentSetup setup, ReadAgentSetup(visit));
  return RunAgentLoop(visit.host, setup, {HumanMessage(prompt)});
}

}  // namespace

extern constexpr NodeType kLlmNode{.name = "LLMNode",
                                   .fields = kFields,
                                   .run = RunLlm,
                                   .need = Need::kNetwork,
                                   .writes_state = true};

}  // namespace caisson::nodes
