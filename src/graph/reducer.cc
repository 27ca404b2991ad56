// SPDX-License-Identifier: Apache-2.0
#include "graph/reducer.h"

#include <array>
#include <utility>
#include <vector>

#include "errors/graph.h"
#include "nodes/python_text.h"

namespace caisson::graph {
namespace {

using nodes::kStateFieldNames;
using nodes::kStateFields;
using nodes::StateField;

constexpr StateField FieldAt(std::size_t i) { return static_cast<StateField>(i); }

// Takes the member that is named like `field` out of `result`.
std::optional<json::Value> TakeField(json::Object& result, StateField field) {
  const std::string_view name = kStateFieldNames[static_cast<std::size_t>(field)];
  json::Value* member = result.FindMutable(name);
  if (member == nullptr) return std::nullopt;
  json::Value value = std::move(*member);
  result.Erase(name);
  return value;
}

bool HasStateField(const json::Object& result) {
  for (const std::string_view name : kStateFieldNames) {
    if (result.Contains(name)) return true;
  }
  return false;
}

// Puts the node's own `payload` beside the entries that it gave for node_results.
void AddOwnEntry(json::Object& entries, const std::string& node_id, json::Value payload) {
  json::Value* given = entries.FindMutable(node_id);
  if (given != nullptr && given->is_object() && payload.is_object()) {
    for (const auto& [key, value] : payload.as_object()) given->mutable_object().Set(key, value);
  } else if (given == nullptr || nodes::Truth(payload)) {
    entries.Set(node_id, std::move(payload));
  }
}

// What a value costs beside its text, about: the value, its place in a container, an allocation.
constexpr std::size_t kValueCost = 64;

class Bounds {
 public:
  Result<void> Check(const json::Value& value, int depth) {
    if (depth > kMaxValueDepth) {
      return Fail(errors::kGraphTooDeep,
                  "a value is nested more than " + std::to_string(kMaxValueDepth) + " levels deep");
    }
    CAISSON_TRY(Count(kValueCost));
    if (value.is_string()) return Count(value.as_string().size());
    if (value.is_array()) {
      for (const json::Value& item : value.as_array()) CAISSON_TRY(Check(item, depth + 1));
    } else if (value.is_object()) {
      for (const auto& [key, member] : value.as_object()) {
        CAISSON_TRY(Count(key.size()));
        CAISSON_TRY(Check(member, depth + 1));
      }
    }
    return {};
  }

 private:
  Result<void> Count(std::size_t bytes) {
    bytes_ += bytes;
    if (bytes_ <= kMaxValueBytes) return {};
    return Fail(errors::kGraphTooLarge,
                "a value has more than " + std::to_string(kMaxValueBytes) + " bytes");
  }
  std::size_t bytes_ = 0;
};

std::unexpected<WriteFault> Fault(const StepWrite& write, Status status) {
  return std::unexpected(WriteFault{write.node_id, std::move(status)});
}

std::expected<void, WriteFault> CheckConflicts(std::span<const StepWrite> writes) {
  std::array<std::string_view, kStateFields> writers{};
  for (const StepWrite& write : writes) {
    for (std::size_t i = 0; i < kStateFields; ++i) {
      const StateField field = FieldAt(i);
      if (field == StateField::kMessages || field == StateField::kNodeResults) continue;
      if (write.update->Find(field) == nullptr) continue;
      if (writers[i].empty()) {
        writers[i] = write.node_id;
        continue;
      }
      return Fault(write, Status{errors::kGraphConflict,
                                 "At key '" + std::string(kStateFieldNames[i]) +
                                     "': Can receive only one value per step. Use an Annotated key "
                                     "to handle multiple values. Nodes '" +
                                     std::string(writers[i]) + "' and '" +
                                     std::string(write.node_id) + "' wrote it in the same step."});
    }
  }
  return {};
}

// The messages after all writes; nullopt when none writes any.
std::expected<std::optional<json::Value>, WriteFault> ReduceMessages(
    const nodes::State& state, std::span<const StepWrite> writes, const IdMaker& new_id) {
  std::optional<json::Value> messages;
  for (const StepWrite& write : writes) {
    const json::Value* written = write.update->Find(StateField::kMessages);
    if (written == nullptr) continue;
    if (!messages) {
      const json::Value* before = state.Find(StateField::kMessages);
      messages = before != nullptr ? *before : json::Value(json::Array());
    }
    auto merged = AddMessages(*messages, *written, new_id);
    if (!merged) return Fault(write, std::move(merged).error());
    messages = *std::move(merged);
  }
  return messages;
}

void MergeResults(nodes::State& state, const json::Value& entries) {
  json::Value& results = state.Mutable(StateField::kNodeResults);
  if (!results.is_object()) results = json::Object();
  json::Object& object = results.mutable_object();
  for (const auto& [key, value] : entries.as_object()) object.Set(key, value);
}

void Apply(nodes::State& state, std::span<const StepWrite> writes,
           const std::optional<json::Value>& messages) {
  for (const StepWrite& write : writes) {
    for (std::size_t i = 0; i < kStateFields; ++i) {
      const StateField field = FieldAt(i);
      const json::Value* value = write.update->Find(field);
      if (value == nullptr || field == StateField::kMessages) continue;
      if (field == StateField::kNodeResults) {
        MergeResults(state, *value);
      } else {
        state.Set(field, *value);
      }
    }
  }
  if (messages) state.Set(StateField::kMessages, *messages);
}

}  // namespace

Result<Update> Promote(const std::string& node_id, json::Value result) {
  Update update;
  json::Object entries;
  if (result.is_object() && HasStateField(result.as_object())) {
    json::Object& members = result.mutable_object();
    for (std::size_t i = 0; i < kStateFields; ++i) {
      auto value = TakeField(members, FieldAt(i));
      if (!value) continue;
      if (FieldAt(i) != StateField::kNodeResults) {
        update.Set(FieldAt(i), *std::move(value));
      } else if (value->is_object()) {
        entries = value->as_object();
      } else {
        return Fail(errors::kGraphNodeFailed,
                    "TaskNode node_results state update must be a mapping");
      }
    }
  }
  AddOwnEntry(entries, node_id, std::move(result));
  update.Set(StateField::kNodeResults, std::move(entries));
  return update;
}

Result<void> CheckBounds(const json::Value& value) { return Bounds().Check(value, 1); }

std::expected<void, WriteFault> ApplyStep(nodes::State& state, std::span<const StepWrite> writes,
                                          const IdMaker& new_id, Update* delta) {
  if (writes.size() > 1) {
    if (auto checked = CheckConflicts(writes); !checked) return checked;
  }
  auto messages = ReduceMessages(state, writes, new_id);
  if (!messages) return std::unexpected(std::move(messages).error());
  Apply(state, writes, *messages);
  if (delta != nullptr) Apply(*delta, writes, *messages);
  return {};
}

}  // namespace caisson::graph
