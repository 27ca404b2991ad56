// SPDX-License-Identifier: Apache-2.0
// StructuredRouterDispatchNode and ExtractAIMessageNode: what becomes of a structured response.
#include "json/truth.h"
#include "nodes/families.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

enum : std::size_t {
  kDecisionKey,
  kActionField,
  kRouteValue,
  kRespondValue,
  kBranchField,
  kRoutingField,
  kMessageField,
  kFallback,
  kCarriedFields,
};
constexpr Field kRouterFields[] = {
    {.name = "structured_response_key",
     .kind = FieldKind::kString,
     .default_json = "\"structured_response\""},
    {.name = "action_field", .kind = FieldKind::kString, .default_json = "\"action\""},
    {.name = "route_action_value", .kind = FieldKind::kString, .default_json = "\"route\""},
    {.name = "respond_action_value", .kind = FieldKind::kString, .default_json = "\"respond\""},
    {.name = "branch_field", .kind = FieldKind::kString, .default_json = "\"branch\""},
    {.name = "routing_field", .kind = FieldKind::kString, .default_json = "\"routing\""},
    {.name = "message_field", .kind = FieldKind::kString, .default_json = "\"message\""},
    {.name = "assistant_message_fallback",
     .kind = FieldKind::kString,
     .default_json = "\"How can I help you?\""},
    {.name = "carried_fields", .kind = FieldKind::kStringList, .default_json = "[]"},
};

// state[key][field]; nullptr when there is no such thing. A template may have made either of them
// no string, which then names nothing.
const json::Value* Lookup(const State& state, const json::Value& key, const json::Value& field) {
  if (!key.is_string() || !field.is_string()) return nullptr;
  const json::Value* response = state.Find(key.as_string());
  return response != nullptr ? response->Find(field.as_string()) : nullptr;
}

// The decision's field as trimmed text, empty when it is absent or false.
std::string DecisionText(const Visit& visit, std::size_t field) {
  const json::Value* value = Lookup(visit.state, visit.fields[kDecisionKey], visit.fields[field]);
  if (value == nullptr || !json::Truth(*value)) return "";
  return std::string(Strip(PyStr(*value)));
}

// A name for a result member that a template may have made no string.
std::string MemberName(const json::Value& name) { return PyStr(name); }

Result<json::Value> RunRouter(const Visit& visit) {
  json::Object carried;
  for (const json::Value& field : visit.fields[kCarriedFields].as_array()) {
    const json::Value* value = Lookup(visit.state, visit.fields[kDecisionKey], field);
    if (value == nullptr || value->is_null() || *value == json::Value("")) continue;
    carried.Set(field.as_string(), *value);
  }
  const std::string routing = MemberName(visit.fields[kRoutingField]);
  const std::string branch = DecisionText(visit, kBranchField);
  if (!branch.empty() && visit.fields[kRouteValue] == DecisionText(visit, kActionField)) {
    carried.Set(routing, branch);
    return carried;
  }
  const std::string message = DecisionText(visit, kMessageField);
  json::Object result{
      {"assistant_message", message.empty() ? visit.fields[kFallback] : json::Value(message)}};
  carried.Set(routing, visit.fields[kRespondValue]);
  for (const auto& [key, value] : carried) result.Set(key, value);
  return result;
}

enum : std::size_t { kResponseKey, kTextField, kTextFallback };
constexpr Field kExtractFields[] = {
    {.name = "structured_response_key",
     .kind = FieldKind::kString,
     .default_json = "\"structured_response\""},
    {.name = "message_field", .kind = FieldKind::kString, .default_json = "\"assistant_message\""},
    {.name = "fallback_message",
     .kind = FieldKind::kString,
     .default_json = "\"Sorry, something went wrong. Please try again later.\""},
};

Result<json::Value> RunExtract(const Visit& visit) {
  const json::Value* found =
      Lookup(visit.state, visit.fields[kResponseKey], visit.fields[kTextField]);
  const bool usable = found != nullptr && found->is_string() && !Strip(found->as_string()).empty();
  const json::Value& reply = usable ? *found : visit.fields[kTextFallback];
  json::Array messages{json::Object{{"type", "ai"}, {"content", reply}}};
  return json::Object{{"assistant_message", reply}, {"messages", std::move(messages)}};
}

}  // namespace

extern constexpr NodeType kStructuredRouterDispatchNode{"StructuredRouterDispatchNode",
                                                        kRouterFields, RunRouter};
extern constexpr NodeType kExtractAiMessageNode{"ExtractAIMessageNode", kExtractFields, RunExtract};

}  // namespace caisson::nodes
