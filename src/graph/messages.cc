// SPDX-License-Identifier: Apache-2.0
#include "graph/messages.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "errors/graph.h"
#include "json/reader.h"
#include "json/truth.h"
#include "nodes/python_text.h"

namespace caisson::graph {
namespace {

using nodes::PyRepr;
using nodes::PyStr;
using nodes::PyType;

constexpr std::string_view kRemove = "remove";
constexpr std::string_view kRemoveAll = "__remove_all__";

std::unexpected<Status> Wrong(std::string message) {
  return Fail(errors::kGraphMessage, std::move(message));
}

constexpr std::pair<std::string_view, std::string_view> kRoles[] = {
    {"human", "human"},       {"user", "human"},    {"ai", "ai"},
    {"assistant", "ai"},      {"system", "system"}, {"developer", "system"},
    {"function", "function"}, {"tool", "tool"},     {"remove", "remove"}};

// Takes `key` out of `members`; nullopt when it is absent.
std::optional<json::Value> Take(json::Object& members, std::string_view key) {
  json::Value* found = members.FindMutable(key);
  if (found == nullptr) return std::nullopt;
  json::Value value = std::move(*found);
  members.Erase(key);
  return value;
}

json::Value TakeOr(json::Object& members, std::string_view key, json::Value fallback) {
  auto value = Take(members, key);
  return value ? *std::move(value) : std::move(fallback);
}

bool IsContent(const json::Value& content) {
  if (content.is_string()) return true;
  return content.is_array() && std::ranges::all_of(content.as_array(), [](const json::Value& part) {
           return part.is_string() || part.is_object();
         });
}

Result<json::Value> Content(json::Value content, std::string_view type) {
  if (!json::Truth(content)) return json::Value("");
  if (IsContent(content)) return content;
  if (type == "tool") return json::Value(PyStr(content));
  return Wrong("the content of a message must be a text or a list of texts and objects, not " +
               std::string(PyType(content)));
}

// An id or name: text, or nothing; numbers count as text where `numbers` says so.
Result<json::Value> Label(json::Value value, std::string_view what, bool numbers) {
  if (value.is_null() || value.is_string()) return value;
  if (numbers && value.is_number()) return json::Value(PyStr(value));
  return Wrong("the " + std::string(what) + " of a message must be a text, not " +
               std::string(PyType(value)));
}

Result<json::Value> ToolCall(const json::Value& call) {
  if (const json::Value* function = call.Find("function")) {
    const json::Value* name = function->Find("name");
    const json::Value* arguments = function->Find("arguments");
    const json::Value* id = call.Find("id");
    if (name == nullptr || arguments == nullptr || id == nullptr) {
      return Wrong("a tool call needs id, function.name and function.arguments");
    }
    json::Value args = *arguments;
    if (args.is_string()) {
      auto parsed = json::Read(args.as_string());
      if (!parsed) return Wrong("the arguments of a tool call: " + parsed.error().message);
      args = *std::move(parsed);
    }
    return json::Object{{"name", *name}, {"args", args}, {"id", *id}, {"type", "tool_call"}};
  }
  const json::Value* name = call.Find("name");
  const json::Value* args = call.Find("args");
  const json::Value* id = call.Find("id");
  if (name == nullptr || args == nullptr || id == nullptr) {
    return Wrong("a tool call needs name, args and id");
  }
  return json::Object{{"name", *name}, {"args", *args}, {"id", *id}, {"type", "tool_call"}};
}

Result<json::Value> ToolCalls(const json::Value& calls) {
  if (calls.is_null()) return json::Value(json::Array());
  if (!calls.is_array()) {
    return Wrong("tool_calls must be a list, not " + std::string(PyType(calls)));
  }
  json::Array normal;
  for (const json::Value& call : calls.as_array()) {
    CAISSON_ASSIGN(json::Value one, ToolCall(call));
    normal.push_back(std::move(one));
  }
  return normal;
}

Result<json::Value> ObjectOrEmpty(json::Value value, std::string_view what) {
  if (value.is_object()) return value;
  if (!json::Truth(value)) return json::Value(json::Object());
  return Wrong("the " + std::string(what) + " of a message must be an object, not " +
               std::string(PyType(value)));
}

// The members that only this type has; takes them out of `rest`.
Result<json::Object> OwnMembers(std::string_view type, json::Object& rest) {
  json::Object own;
  if (type == "ai") {
    CAISSON_ASSIGN(json::Value calls, ToolCalls(TakeOr(rest, "tool_calls", nullptr)));
    own.Set("tool_calls", std::move(calls));
    own.Set("invalid_tool_calls", TakeOr(rest, "invalid_tool_calls", json::Array()));
    own.Set("usage_metadata", TakeOr(rest, "usage_metadata", nullptr));
  }
  if (type == "tool") {
    const auto call_id = Take(rest, "tool_call_id");
    if (!call_id || call_id->is_null()) return Wrong("a tool message needs a tool_call_id");
    own.Set("tool_call_id", PyStr(*call_id));
    own.Set("artifact", TakeOr(rest, "artifact", nullptr));
    const json::Value status = TakeOr(rest, "status", nullptr);
    own.Set("status", status.is_null() ? json::Value("success") : status);
  }
  if (type == "human" || type == "ai") {
    json::Value example = TakeOr(rest, "example", false);
    if (json::Truth(example)) own.Set("example", std::move(example));
  }
  for (const std::string_view extra : {"tool_calls", "tool_call_id"}) {
    auto value = Take(rest, extra);
    if (value && !value->is_null()) own.Set(extra, *std::move(value));
  }
  return own;
}

// What is left of a message's members, with those that `additional_kwargs` gave, which win.
Result<json::Value> AdditionalKwargs(json::Object rest, json::Value given, bool developer) {
  CAISSON_ASSIGN(const json::Value explicit_ones,
                 ObjectOrEmpty(std::move(given), "additional_kwargs"));
  for (const auto& [key, value] : explicit_ones.as_object()) rest.Set(key, value);
  if (developer) rest.Set("__openai_role__", "developer");
  return rest;
}

Result<json::Value> Build(const json::Value& role, json::Value content, json::Object rest) {
  const auto* entry = std::ranges::find_if(kRoles, [&](const auto& known) {
    return role.is_string() && known.first == role.as_string();
  });
  if (entry == std::end(kRoles)) {
    return Wrong("Unexpected message type: '" + PyStr(role) +
                 "'. Use one of 'human', 'user', 'ai', 'assistant', 'function', 'tool', 'system', "
                 "or 'developer'.");
  }
  const std::string_view type = entry->second;
  CAISSON_ASSIGN(json::Value text, Content(std::move(content), type));
  CAISSON_ASSIGN(json::Value name, Label(TakeOr(rest, "name", nullptr), "name", false));
  CAISSON_ASSIGN(json::Value id, Label(TakeOr(rest, "id", nullptr), "id", true));
  if (type == kRemove) {
    if (id.is_null()) return Wrong("a message of type 'remove' needs the id of another message");
    return json::Object{{"content", ""}, {"type", type}, {"id", std::move(id)}};
  }
  if (type == "function" && name.is_null()) return Wrong("a function message needs a name");
  json::Value given = TakeOr(rest, "additional_kwargs", nullptr);
  CAISSON_ASSIGN(json::Value metadata,
                 ObjectOrEmpty(TakeOr(rest, "response_metadata", nullptr), "response_metadata"));
  CAISSON_ASSIGN(const json::Object own, OwnMembers(type, rest));
  CAISSON_ASSIGN(json::Value kwargs, AdditionalKwargs(std::move(rest), std::move(given),
                                                      role.as_string() == "developer"));
  json::Object message{{"content", std::move(text)},
                       {"additional_kwargs", std::move(kwargs)},
                       {"response_metadata", std::move(metadata)},
                       {"type", type},
                       {"name", std::move(name)},
                       {"id", std::move(id)}};
  for (const auto& [key, value] : own) message.Set(key, value);
  return message;
}

// {"lc": 1, "type": "constructor", "id": [..., "HumanMessage"], "kwargs": {...}} -> its plain form.
std::optional<json::Value> FromConstructor(const json::Object& message) {
  const json::Value* marker = message.Find("lc");
  const json::Value* type = message.Find("type");
  const json::Value* id = message.Find("id");
  const json::Value* kwargs = message.Find("kwargs");
  if (marker == nullptr || *marker != json::Value(1) || type == nullptr ||
      *type != json::Value("constructor") || id == nullptr || !id->is_array() ||
      id->as_array().empty() || kwargs == nullptr || !kwargs->is_object()) {
    return std::nullopt;
  }
  static constexpr std::pair<std::string_view, std::string_view> kClasses[] = {
      {"HumanMessage", "human"},       {"AIMessage", "ai"},     {"SystemMessage", "system"},
      {"FunctionMessage", "function"}, {"ToolMessage", "tool"}, {"RemoveMessage", "remove"}};
  std::string name = PyStr(id->as_array().back());
  if (name.ends_with("Chunk")) name.resize(name.size() - 5);
  for (const auto& [class_name, plain] : kClasses) {
    if (class_name != name) continue;
    json::Object result = kwargs->as_object();
    if (!result.Contains("type")) result.Set("type", plain);
    return result;
  }
  return std::nullopt;
}

Result<json::Value> FromObject(const json::Value& message) {
  if (const auto plain = FromConstructor(message.as_object())) return FromObject(*plain);
  json::Object rest = message.as_object();
  auto role = Take(rest, "role");
  if (!role) role = Take(rest, "type");
  auto content = Take(rest, "content");
  // A removal needs no content.
  if (role && !content && *role == json::Value(kRemove)) content = json::Value("");
  if (!role || !content) {
    std::string shown = PyRepr(message);
    if (shown.size() > 200) shown = shown.substr(0, 200) + "...";
    return Wrong("Message dict must contain 'role' and 'content' keys, got " + shown);
  }
  return Build(*role, *std::move(content), std::move(rest));
}

Result<json::Array> NormaliseAll(const json::Value& messages, const IdMaker& new_id) {
  if (messages.is_null()) return Wrong("messages must be a message or a list of them, not null");
  json::Array normal;
  const auto add = [&](const json::Value& message) -> Result<void> {
    CAISSON_ASSIGN(json::Value one, NormaliseMessage(message));
    if (one.Find("id")->is_null()) one.mutable_object().Set("id", new_id());
    normal.push_back(std::move(one));
    return {};
  };
  if (!messages.is_array()) {
    CAISSON_TRY(add(messages));
    return normal;
  }
  for (const json::Value& message : messages.as_array()) CAISSON_TRY(add(message));
  return normal;
}

bool IsRemoval(const json::Value& message) { return *message.Find("type") == json::Value(kRemove); }
const std::string& IdOf(const json::Value& message) { return message.Find("id")->as_string(); }

}  // namespace

Result<json::Value> NormaliseMessage(const json::Value& message) {
  if (message.is_string()) return Build("human", message, {});
  if (message.is_array()) {
    const json::Array& pair = message.as_array();
    if (pair.size() != 2) return Wrong("Message as a sequence must be (role string, template)");
    return Build(pair[0], pair[1], {});
  }
  if (message.is_object()) return FromObject(message);
  return Wrong("Unsupported message type: <class '" + std::string(PyType(message)) + "'>");
}

Result<json::Value> NormaliseMessages(const json::Value& messages, const IdMaker& new_id) {
  CAISSON_ASSIGN(json::Array normal, NormaliseAll(messages, new_id));
  return json::Value(std::move(normal));
}

Result<json::Value> AddMessages(const json::Value& left, const json::Value& right,
                                const IdMaker& new_id) {
  CAISSON_ASSIGN(json::Array incoming, NormaliseAll(right, new_id));
  const auto last_clear = std::ranges::find_if(
      incoming.rbegin(), incoming.rend(),
      [](const json::Value& message) { return IsRemoval(message) && IdOf(message) == kRemoveAll; });
  if (last_clear != incoming.rend()) {
    return json::Value(json::Array(last_clear.base(), incoming.end()));
  }
  json::Value merged = left.is_array() ? left : json::Value(json::Array());
  json::Array& list = merged.mutable_array();
  std::unordered_map<std::string_view, std::size_t> positions;
  std::unordered_set<std::string> removed;
  // Only ids that come in are looked for in what is there.
  std::unordered_set<std::string_view> wanted;
  for (const json::Value& message : incoming) wanted.insert(IdOf(message));
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (const auto id = wanted.find(IdOf(list[i])); id != wanted.end()) positions[*id] = i;
  }
  for (const json::Value& message : incoming) {
    const std::string& id = IdOf(message);
    const auto known = positions.find(id);
    if (known == positions.end() && IsRemoval(message)) {
      return Wrong("Attempting to delete a message with an ID that doesn't exist ('" + id + "')");
    }
    if (known == positions.end()) {
      positions[*wanted.find(id)] = list.size();
      list.push_back(message);
    } else if (IsRemoval(message)) {
      removed.insert(id);
    } else {
      removed.erase(id);
      list[known->second] = message;
    }
  }
  if (!removed.empty()) {
    std::erase_if(list,
                  [&](const json::Value& message) { return removed.contains(IdOf(message)); });
  }
  return merged;
}

std::string RandomUuid() {
  std::array<unsigned char, 16> bytes;
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::getrandom(bytes.data() + have, bytes.size() - have, 0);
    if (got > 0) have += static_cast<std::size_t>(got);
    // Ids must be unforgeable; a kernel without randomness is not one to go on with.
    if (got < 0 && errno != EINTR) std::abort();
  }
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kHex[bytes[i] >> 4];
    text += kHex[bytes[i] & 0xf];
  }
  return text;
}

}  // namespace caisson::graph
