// SPDX-License-Identifier: Apache-2.0
#include "nodes/agent_fields.h"

#include <algorithm>
#include <utility>

#include "errors/nodes.h"
#include "json/truth.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

Result<json::Value> MustBeEmpty(const json::Value& value, std::string_view path,
                                const std::string& what) {
  const bool is_empty = value.is_array()    ? value.as_array().empty()
                        : value.is_object() ? value.as_object().empty()
                                            : !json::Truth(value);
  if (is_empty) return value;
  return Fail(errors::kNodesConfig, std::string(path) + ": " + what);
}

// What the strict form of a request allows: nothing is optional, nothing more may come, and no
// keyword that endpoints refuse there.
bool FitsStrict(const json::Value& schema) {
  static constexpr std::string_view kKnown[] = {
      "type",  "properties", "required", "additionalProperties", "items", "enum", "const",
      "anyOf", "$ref",       "$defs",    "description",          "title"};
  if (!schema.is_object()) return false;
  for (const auto& [key, value] : schema.as_object()) {
    if (std::ranges::find(kKnown, key) == std::end(kKnown)) return false;
    if (key == "items" && !FitsStrict(value)) return false;
    if (key == "anyOf" && value.is_array() && !std::ranges::all_of(value.as_array(), FitsStrict)) {
      return false;
    }
    if ((key == "properties" || key == "$defs") && value.is_object()) {
      for (const auto& [name, part] : value.as_object()) {
        if (!FitsStrict(part)) return false;
      }
    }
  }
  const json::Value* type = schema.Find("type");
  const json::Value* properties = schema.Find("properties");
  if (properties == nullptr) return type == nullptr || *type != json::Value("object");
  const json::Value* more = schema.Find("additionalProperties");
  const json::Value* required = schema.Find("required");
  if (more == nullptr || *more != json::Value(false)) return false;
  if (required == nullptr || !required->is_array() || !properties->is_object()) return false;
  return std::ranges::all_of(properties->as_object(), [&](const auto& member) {
    return std::ranges::find(required->as_array(), json::Value(member.first)) !=
           required->as_array().end();
  });
}

Result<std::string> Text(const json::Value& value, std::string_view name) {
  if (value.is_null()) return std::string();
  if (value.is_string()) return value.as_string();
  return NodeFailed(std::string(name) + " must be a string, not " + std::string(PyType(value)));
}

}  // namespace

Result<json::Value> NoPredefinedTools(const json::Value& value, std::string_view path) {
  return MustBeEmpty(value, path,
                     "predefined tools do not exist here; leave the field out and give the agent "
                     "workflow_tools");
}

Result<json::Value> NoChatkitWidgets(const json::Value& value, std::string_view path) {
  return MustBeEmpty(value, path, "ChatKit widgets do not exist here; leave the field out");
}

Result<json::Value> NoMcpServers(const json::Value& value, std::string_view path) {
  return MustBeEmpty(value, path,
                     "MCP servers are not spoken to here; leave the field out and give the agent "
                     "workflow_tools");
}

Result<json::Value> IsResponseFormat(const json::Value& value, std::string_view path) {
  const auto schema = json::Schema::Compile(value);
  if (schema) return value;
  return Fail(errors::kNodesConfig, std::string(path) + ": " + schema.error().message);
}

Result<ResponseFormat> ReadResponseFormat(const json::Value& schema) {
  CAISSON_ASSIGN(json::Schema compiled, json::Schema::Compile(schema));
  json::Object form = schema.as_object();
  json::Object named{{"name", "response_format"}};
  if (const json::Value* title = schema.Find("title"); title != nullptr && title->is_string()) {
    named.Set("name", *title);
    form.Erase("title");
  }
  if (const json::Value* text = schema.Find("description"); text != nullptr && text->is_string()) {
    named.Set("description", *text);
    form.Erase("description");
  }
  named.Set("strict", FitsStrict(schema));
  named.Set("schema", std::move(form));
  return ResponseFormat{std::move(compiled),
                        json::Object{{"type", "json_schema"}, {"json_schema", std::move(named)}}};
}

Result<AgentSetup> ReadAgentSetup(const Visit& visit) {
  const auto& fields = visit.fields;
  AgentSetup setup;
  CAISSON_ASSIGN(const std::string model, Text(fields[kAiModel], "ai_model"));
  const json::Value& kwargs = fields[kModelKwargs];
  if (!kwargs.is_object()) return NodeFailed("model_kwargs must be an object");
  CAISSON_ASSIGN(setup.settings, ReadChatSettings(model, kwargs.as_object()));
  CAISSON_ASSIGN(setup.system_prompt, Text(fields[kSystemPrompt], "system_prompt"));
  const json::Value& format = fields[kResponseFormat];
  if (!format.is_null()) {
    if (!format.is_object()) return NodeFailed("response_format must be an object");
    CAISSON_ASSIGN(setup.format, ReadResponseFormat(format));
  }
  if (json::Truth(fields[kModelSettings])) {
    visit.host.Log(LogLevel::kWarning,
                   "model_settings has no effect, as in Orcheo; use model_kwargs");
  }
  return setup;
}

}  // namespace caisson::nodes
