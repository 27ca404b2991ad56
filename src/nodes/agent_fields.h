// SPDX-License-Identifier: Apache-2.0
// The fields that AgentNode and LLMNode share, and what they mean together.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "json/schema.h"
#include "nodes/chat_settings.h"
#include "nodes/node.h"

namespace caisson::nodes {

enum AgentField : std::size_t {
  kAiModel,
  kModelSettings,
  kModelKwargs,
  kSystemPrompt,
  kPredefinedTools,
  kWorkflowTools,
  kUseChatkitWidgetTools,
  kMcpServers,
  kResponseFormat,
  kMaxMessages,
  kResetCommand,
  kUseGraphChatHistory,
  kHistoryNamespace,
  kHistoryKeyTemplate,
  kHistoryKeyCandidates,
  kHistoryValueField,
  kAgentFields,
};

// Checks: what cannot be done here must be empty, and a response_format must be a JSON Schema.
Result<json::Value> NoPredefinedTools(const json::Value& value, std::string_view path);
Result<json::Value> NoChatkitWidgets(const json::Value& value, std::string_view path);
Result<json::Value> NoMcpServers(const json::Value& value, std::string_view path);
Result<json::Value> IsResponseFormat(const json::Value& value, std::string_view path);

// Where the nodes that listen to chat services leave who speaks.
inline constexpr std::string_view kHistoryKeys = R"([
    "{{inputs.platform}}:{{inputs.message.chat_id}}",
    "{{inputs.listener.platform}}:{{inputs.listener.message.chat_id}}",
    "telegram:{{node_results.telegram_events_parser.chat_id}}",
    "wecom_cs:{{node_results.wecom_cs_sync.open_kf_id}}:{{node_results.wecom_cs_sync.external_userid}}",
    "wecom_aibot:{{node_results.wecom_ai_bot_events_parser.chat_type}}:{{node_results.wecom_ai_bot_events_parser.user}}",
    "wecom_dm:{{node_results.wecom_events_parser.user}}"])";

inline constexpr std::array<Field, kAgentFields> kCommonAgentFields{{
    {.name = "ai_model", .kind = FieldKind::kString, .required = true},
    {.name = "model_settings", .kind = FieldKind::kObject, .nullable = true},
    {.name = "model_kwargs", .kind = FieldKind::kObject, .default_json = "{}"},
    {.name = "system_prompt", .kind = FieldKind::kString, .nullable = true},
    {.name = "predefined_tools",
     .kind = FieldKind::kStringList,
     .default_json = "[]",
     .check = NoPredefinedTools},
    {.name = "workflow_tools", .kind = FieldKind::kTools, .default_json = "[]"},
    {.name = "use_chatkit_widget_tools",
     .kind = FieldKind::kBool,
     .default_json = "false",
     .check = NoChatkitWidgets},
    {.name = "mcp_servers",
     .kind = FieldKind::kObject,
     .default_json = "{}",
     .check = NoMcpServers},
    {.name = "response_format",
     .kind = FieldKind::kObject,
     .nullable = true,
     .check = IsResponseFormat},
    {.name = "max_messages", .kind = FieldKind::kInt, .default_json = "30"},
    {.name = "reset_command", .kind = FieldKind::kString, .default_json = "\"\""},
    {.name = "use_graph_chat_history", .kind = FieldKind::kBool, .default_json = "false"},
    {.name = "history_namespace",
     .kind = FieldKind::kStringList,
     .default_json = R"(["agent_chat_history"])"},
    {.name = "history_key_template",
     .kind = FieldKind::kTemplate,
     .default_json = R"("{{conversation_key}}")"},
    {.name = "history_key_candidates",
     .kind = FieldKind::kTemplateList,
     .default_json = kHistoryKeys},
    {.name = "history_value_field", .kind = FieldKind::kString, .default_json = R"("content")"},
}};

// A form that an answer must have.
struct ResponseFormat {
  json::Schema schema;
  json::Value request;  // the member "response_format" of a request
};
// `schema` is an object. Fails as json::Schema::Compile does.
Result<ResponseFormat> ReadResponseFormat(const json::Value& schema);

// What the fields of a visit say of the model. A template may have given any of them any type:
// fails with nodes.failed then, or as ReadChatSettings does.
struct AgentSetup {
  ChatSettings settings;
  std::string system_prompt;
  std::optional<ResponseFormat> format;
};
Result<AgentSetup> ReadAgentSetup(const Visit& visit);

}  // namespace caisson::nodes
