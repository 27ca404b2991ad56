// SPDX-License-Identifier: Apache-2.0
#include "nodes/chat_history.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

#include "nodes/chat_messages.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr std::size_t kMaxKey = 256;

bool IsKey(std::string_view key) {
  return !key.empty() && key.size() <= kMaxKey && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ':' ||
           c == '_' || c == '-';
  });
}

// What a template gives as a key; empty when it is none.
Result<std::string> KeyOf(const Visit& visit, const json::Value& text, const State& state,
                          bool may_be_number) {
  if (!text.is_string()) return std::string();
  CAISSON_ASSIGN(const json::Value value, visit.host.Fill(text.as_string(), state));
  if (!value.is_string() && !(may_be_number && (value.is_number() || value.is_bool()))) {
    return std::string();
  }
  const std::string key(Strip(PyStr(value)));
  return IsKey(key) ? key : std::string();
}

struct Turn {
  std::string role;
  std::string text;
  bool operator==(const Turn&) const = default;
};

const json::Value* TextMember(const json::Value& item, std::string_view field) {
  const json::Value* text = item.Find(field);
  return text != nullptr ? text : item.Find("content");
}

std::vector<Turn> StoredTurns(const json::Value* stored, std::string_view field) {
  std::vector<Turn> turns;
  const json::Value* messages = stored == nullptr ? nullptr : stored->Find("messages");
  if (messages == nullptr || !messages->is_array()) return turns;
  for (const json::Value& item : messages->as_array()) {
    const json::Value* role = item.Find("role");
    const json::Value* text = TextMember(item, field);
    if (role == nullptr || text == nullptr || !text->is_string()) continue;
    if (Strip(text->as_string()).empty()) continue;
    if (*role == json::Value("assistant") || *role == json::Value("user")) {
      turns.push_back({role->as_string(), text->as_string()});
    }
  }
  return turns;
}

std::vector<Turn> ObservedTurns(const json::Array& messages) {
  std::vector<Turn> turns;
  for (const json::Value& message : messages) {
    const json::Value* type = message.Find("type");
    const json::Value* content = message.Find("content");
    if (type == nullptr || content == nullptr) continue;
    const bool is_ai = *type == json::Value("ai");
    if (is_ai || *type == json::Value("human")) {
      turns.push_back({is_ai ? "assistant" : "user", PyStr(*content)});
    }
  }
  return turns;
}

// How many of the first of `observed` are the last of `known`.
std::size_t Overlap(std::span<const Turn> known, std::span<const Turn> observed) {
  for (std::size_t count = std::min(known.size(), observed.size()); count > 0; --count) {
    if (std::ranges::equal(known.last(count), observed.first(count))) return count;
  }
  return 0;
}

std::int64_t VersionOf(const json::Value* stored) {
  const json::Value* version = stored == nullptr ? nullptr : stored->Find("version");
  if (version == nullptr) return 0;
  std::int64_t number = 0;
  if (version->is_int()) number = version->as_int();
  if (version->is_string() && IsDigits(version->as_string())) {
    const std::string& text = version->as_string();
    std::from_chars(text.data(), text.data() + text.size(), number);
  }
  return std::clamp<std::int64_t>(number, 0, std::int64_t{1} << 60);
}

json::Value StoredForm(const std::vector<Turn>& turns, std::int64_t version,
                       std::string_view field) {
  json::Array messages;
  for (const Turn& turn : turns) {
    if (Strip(turn.text).empty()) continue;
    json::Object item{{"role", turn.role}};
    item.Set(field, turn.text);
    item.Set("content", turn.text);
    messages.push_back(std::move(item));
  }
  return json::Object{{"version", version}, {"messages", std::move(messages)}};
}

}  // namespace

Result<std::optional<std::string>> FindHistoryKey(const Visit& visit, const HistoryFields& fields) {
  std::string conversation;
  if (fields.candidates.is_array()) {
    for (const json::Value& candidate : fields.candidates.as_array()) {
      CAISSON_ASSIGN(conversation, KeyOf(visit, candidate, visit.state, true));
      if (!conversation.empty()) break;
    }
  }
  std::string key;
  if (!conversation.empty()) {
    // Paths that name no field of the state name a node's result.
    State state = visit.state;
    json::Value& results = state.Mutable(StateField::kNodeResults);
    if (!results.is_object()) results = json::Object();
    results.mutable_object().Set("conversation_key", conversation);
    CAISSON_ASSIGN(key, KeyOf(visit, fields.key_template, state, false));
  }
  if (!key.empty()) return std::optional(std::move(key));
  visit.host.Log(LogLevel::kWarning,
                 "the agent '" + visit.name + "' remembers nothing of this conversation: " +
                     (conversation.empty() ? "no history_key_candidates gives a key"
                                           : "history_key_template gives no key"));
  return std::optional<std::string>();
}

json::Array ReadHistory(const json::Value* stored, std::string_view field) {
  json::Array messages;
  for (const Turn& turn : StoredTurns(stored, field)) {
    messages.push_back(turn.role == "user"
                           ? HumanMessage(turn.text)
                           : json::Value(json::Object{{"type", "ai"}, {"content", turn.text}}));
  }
  return messages;
}

std::optional<json::Value> ExtendHistory(const json::Value* stored, const json::Array& observed,
                                         std::string_view field) {
  std::vector<Turn> known = StoredTurns(stored, field);
  const std::vector<Turn> turns = ObservedTurns(observed);
  const std::size_t overlap = Overlap(known, turns);
  if (overlap == turns.size()) return std::nullopt;
  known.insert(known.end(), turns.begin() + static_cast<std::ptrdiff_t>(overlap), turns.end());
  return StoredForm(known, VersionOf(stored) + 1, field);
}

}  // namespace caisson::nodes
