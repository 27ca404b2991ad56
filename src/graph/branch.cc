// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "errors/graph.h"
#include "graph/context.h"
#include "nodes/python_text.h"

namespace caisson::graph {
namespace {

using nodes::StateField;

constexpr std::size_t kShownText = 1000;

// The state field with `update` applied, without touching the state.
Result<json::Value> FieldAfter(StateField field, const nodes::State& state, const Update& update,
                               const IdMaker& new_id) {
  const json::Value* before = state.Find(field);
  const json::Value* written = update.Find(field);
  if (written == nullptr) return before != nullptr ? *before : json::Value();
  if (field == StateField::kMessages) {
    return AddMessages(before != nullptr ? *before : json::Value(json::Array()), *written, new_id);
  }
  if (field != StateField::kNodeResults || before == nullptr || !before->is_object()) {
    return *written;
  }
  json::Value merged = *before;
  for (const auto& [key, value] : written->as_object()) merged.mutable_object().Set(key, value);
  return merged;
}

// node_results[id] after `update`; nullptr when there is none.
const json::Value* EntryAfter(const std::string& id, const nodes::State& state,
                              const Update& update) {
  for (const nodes::State* source : {&update, &state}) {
    const json::Value* results = source->Find(StateField::kNodeResults);
    const json::Value* entry = results != nullptr ? results->Find(id) : nullptr;
    if (entry != nullptr) return entry;
  }
  return nullptr;
}

Result<json::Value> Look(const Branch& branch, const nodes::State& state, const Update& update,
                         const IdMaker& new_id) {
  const auto field = nodes::FindStateField(branch.segments[0]);
  if (!field) return json::Value();
  json::Value root;
  const json::Value* current = nullptr;
  std::size_t next = 1;
  if (*field == StateField::kNodeResults && branch.segments.size() > 1) {
    current = EntryAfter(branch.segments[1], state, update);
    next = 2;
  } else {
    CAISSON_ASSIGN(root, FieldAfter(*field, state, update, new_id));
    current = &root;
  }
  for (; current != nullptr && next < branch.segments.size(); ++next) {
    current = current->Find(branch.segments[next]);
  }
  return current != nullptr ? *current : json::Value();
}

std::string KeyOf(const json::Value& value) {
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_null()) return "null";
  return nodes::PyStr(value);
}

std::string Cut(std::string text) {
  if (text.size() > kShownText) text = text.substr(0, kShownText) + "...";
  return text;
}

}  // namespace

Result<NodeIndex> FollowBranch(const Branch& branch, const nodes::State& state,
                               const Update& update, const IdMaker& new_id) {
  CAISSON_ASSIGN(const json::Value value, Look(branch, state, update, new_id));
  const std::string key = KeyOf(value);
  if (const auto hit = branch.mapping.find(key); hit != branch.mapping.end()) return hit->second;
  if (branch.default_target) return *branch.default_target;
  json::Array keys(branch.sorted_keys.begin(), branch.sorted_keys.end());
  return Fail(errors::kGraphBranch,
              "Conditional edge on state path " + nodes::PyReprText(branch.path) +
                  " produced value " + Cut(nodes::PyReprText(key)) + ", which is not in mapping " +
                  Cut(nodes::PyRepr(json::Value(std::move(keys)))) +
                  " and no 'default' target was configured. Add a 'default' (use 'END' to end the "
                  "run intentionally).");
}

}  // namespace caisson::graph
