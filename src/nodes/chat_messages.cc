// SPDX-License-Identifier: Apache-2.0
#include "nodes/chat_messages.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "json/reader.h"
#include "json/writer.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

bool IsType(const json::Value& message, std::string_view type) {
  const json::Value* found = message.Find("type");
  return found != nullptr && found->is_string() && found->as_string() == type;
}

const std::string* TextOf(const json::Value* value) {
  return value != nullptr && value->is_string() ? &value->as_string() : nullptr;
}

json::Value PlainAiMessage(std::string_view text) {
  return json::Object{{"type", "ai"}, {"content", text}};
}

std::optional<std::string> Stripped(const std::string* text) {
  if (text == nullptr) return std::nullopt;
  const std::string_view stripped = Strip(*text);
  return stripped.empty() ? std::nullopt : std::optional<std::string>(stripped);
}

// A message as inputs hold one: text, or an object with text or content.
std::optional<std::string> InputText(const json::Value* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return Stripped(&value->as_string());
  const std::string* text = TextOf(value->Find("text"));
  return Stripped(text != nullptr ? text : TextOf(value->Find("content")));
}

std::optional<std::string> CurrentTurn(const json::Value& inputs) {
  for (const std::string_view key : {"message", "user_message", "query", "prompt"}) {
    if (auto text = InputText(inputs.Find(key))) return text;
  }
  const json::Value* listener = inputs.Find("listener");
  return listener == nullptr ? std::nullopt : InputText(listener->Find("message"));
}

json::Array FromInputs(const json::Value& inputs) {
  json::Array messages;
  const json::Value* history = inputs.Find("history");
  if (history != nullptr && history->is_array()) {
    for (const json::Value& turn : history->as_array()) {
      const std::string* content = TextOf(turn.Find("content"));
      const std::string* role = TextOf(turn.Find("role"));
      if (content == nullptr || role == nullptr || Strip(*content).empty()) continue;
      if (*role == "assistant") messages.push_back(PlainAiMessage(*content));
      if (*role == "user") messages.push_back(HumanMessage(*content));
    }
  }
  const auto turn = CurrentTurn(inputs);
  if (!turn) return messages;
  const bool is_there = !messages.empty() && IsType(messages.back(), "human") &&
                        Strip(messages.back().Find("content")->as_string()) == *turn;
  if (!is_there) messages.push_back(HumanMessage(*turn));
  return messages;
}

// From the latest reset on.
void ApplyReset(json::Array& messages, const std::string& command) {
  if (command.empty()) return;
  const auto is_reset = [&](const json::Value& message) {
    const std::string* content = TextOf(message.Find("content"));
    return content != nullptr && Strip(*content) == command;
  };
  const auto last = std::find_if(messages.rbegin(), messages.rend(), is_reset);
  if (last != messages.rend()) messages.erase(messages.begin(), std::prev(last.base()));
}

bool HasCalls(const json::Value& message) {
  const json::Value* calls = message.Find("tool_calls");
  return calls != nullptr && calls->is_array() && !calls->as_array().empty();
}

std::string SpacedJson(const json::Value& value) {
  return json::Write(value, {.spaced = true}).value_or("{}");
}

json::Value WireCall(const json::Value& id, const json::Value& name, std::string arguments) {
  return json::Object{{"type", "function"},
                      {"id", id},
                      {"function", json::Object{{"name", name}, {"arguments", arguments}}}};
}

json::Value MemberOf(const json::Value& value, std::string_view key) {
  const json::Value* found = value.Find(key);
  return found == nullptr ? json::Value() : *found;
}

void AddWireCalls(const json::Value& message, json::Object& wire) {
  json::Array calls;
  const json::Value good = MemberOf(message, "tool_calls");
  const json::Value bad = MemberOf(message, "invalid_tool_calls");
  for (const json::Value& call : good.is_array() ? good.as_array() : json::Array()) {
    calls.push_back(
        WireCall(MemberOf(call, "id"), MemberOf(call, "name"), SpacedJson(MemberOf(call, "args"))));
  }
  for (const json::Value& call : bad.is_array() ? bad.as_array() : json::Array()) {
    const json::Value text = MemberOf(call, "args");
    calls.push_back(WireCall(MemberOf(call, "id"), MemberOf(call, "name"),
                             text.is_string() ? text.as_string() : ""));
  }
  if (calls.empty()) return;
  wire.Set("tool_calls", std::move(calls));
  if (MemberOf(message, "content") == json::Value("")) wire.Set("content", nullptr);
}

std::string_view WireRole(const json::Value& message) {
  if (IsType(message, "ai")) return "assistant";
  if (IsType(message, "tool")) return "tool";
  if (IsType(message, "function")) return "function";
  if (!IsType(message, "system")) return "user";
  const json::Value kwargs = MemberOf(message, "additional_kwargs");
  return MemberOf(kwargs, "__openai_role__") == json::Value("developer") ? "developer" : "system";
}

json::Value WireMessage(const json::Value& message) {
  const std::string_view role = WireRole(message);
  json::Object wire{{"content", MemberOf(message, "content")}, {"role", role}};
  if (role == "tool") {
    wire.Set("tool_call_id", MemberOf(message, "tool_call_id"));
    return wire;
  }
  const json::Value name = MemberOf(message, "name");
  if (name.is_string()) wire.Set("name", name);
  if (role == "assistant") AddWireCalls(message, wire);
  return wire;
}

json::Value Metadata(const ChatAnswer& answer) {
  json::Object metadata{{"model_provider", "openai"}};
  const auto add = [&](const char* key, const std::string& text) {
    if (!text.empty()) metadata.Set(key, text);
  };
  add("model_name", answer.model);
  add("system_fingerprint", answer.fingerprint);
  add("id", answer.id);
  add("finish_reason", answer.finish_reason);
  return metadata;
}

json::Value UsageMetadata(const std::optional<ChatUsage>& usage) {
  if (!usage) return nullptr;
  return json::Object{{"input_tokens", usage->input},
                      {"output_tokens", usage->output},
                      {"total_tokens", usage->total},
                      {"input_token_details", json::Object()},
                      {"output_token_details", json::Object()}};
}

}  // namespace

json::Array FindConversation(const State& state, const HistoryRules& rules) {
  json::Array messages;
  const json::Value* existing = state.Find(StateField::kMessages);
  const json::Value* inputs = state.Find(StateField::kInputs);
  if (existing != nullptr && existing->is_array() && !existing->as_array().empty()) {
    messages = existing->as_array();
  } else if (inputs != nullptr) {
    messages = FromInputs(*inputs);
  }
  ApplyReset(messages, rules.reset_command);
  TrimConversation(messages, rules.max_messages);
  return messages;
}

void TrimConversation(json::Array& messages, std::int64_t most) {
  const auto size = static_cast<std::int64_t>(messages.size());
  const std::int64_t dropped = most > 0 ? std::max<std::int64_t>(0, size - most)
                                        : std::min(size, std::max(most, -size) * -1);
  messages.erase(messages.begin(), messages.begin() + dropped);
  const auto first =
      std::ranges::find_if_not(messages, [](const json::Value& m) { return IsType(m, "tool"); });
  messages.erase(messages.begin(), first);
  while (!messages.empty() && IsType(messages.back(), "ai") && HasCalls(messages.back())) {
    messages.pop_back();
  }
}

json::Value HumanMessage(std::string_view text) {
  return json::Object{{"type", "human"}, {"content", text}};
}

std::optional<json::Object> ReadArguments(const ChatCall& call) {
  if (Strip(call.arguments).empty()) return json::Object();
  auto read = json::Read(call.arguments, {.max_depth = 200});
  if (!read || !read->is_object()) return std::nullopt;
  return read->as_object();
}

json::Value AiMessage(const ChatAnswer& answer) {
  json::Array calls;
  json::Array invalid;
  for (const ChatCall& call : answer.calls) {
    if (auto arguments = ReadArguments(call)) {
      calls.push_back(json::Object{{"name", call.name},
                                   {"args", *std::move(arguments)},
                                   {"id", call.id},
                                   {"type", "tool_call"}});
    } else {
      invalid.push_back(json::Object{{"type", "invalid_tool_call"},
                                     {"id", call.id},
                                     {"name", call.name},
                                     {"args", call.arguments},
                                     {"error", "the arguments are no JSON object"}});
    }
  }
  return json::Object{{"type", "ai"},
                      {"content", answer.content},
                      {"tool_calls", std::move(calls)},
                      {"invalid_tool_calls", std::move(invalid)},
                      {"usage_metadata", UsageMetadata(answer.usage)},
                      {"response_metadata", Metadata(answer)}};
}

json::Value ToolMessage(const ChatCall& call, json::Value content, bool is_error) {
  return json::Object{{"type", "tool"},
                      {"content", std::move(content)},
                      {"name", call.name},
                      {"tool_call_id", call.id},
                      {"status", is_error ? "error" : "success"}};
}

json::Array ToWire(std::string_view system_prompt, const json::Array& messages) {
  json::Array wire;
  if (!system_prompt.empty()) {
    wire.push_back(json::Object{{"content", system_prompt}, {"role", "system"}});
  }
  for (const json::Value& message : messages) wire.push_back(WireMessage(message));
  return wire;
}

}  // namespace caisson::nodes
