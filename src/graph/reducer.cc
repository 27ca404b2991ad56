// SPDX-License-Identifier: Apache-2.0
#include "graph/reducer.h"

#include <array>
#include <utility>
#include <vector>

#include "errors/graph.h"
#include "json/truth.h"
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
  } else if (given == nullptr || json::Truth(payload)) {
    entries.Set(node_id, std::move(payload));
  }
}

// What a value costs beside its text, about: the value, its place in a container, an allocation.
constexpr std::size_t kValueCost = 64;

class Bounds {
 public:
  std::size_t weight() const { return weight_; }

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
    weight_ += bytes;
    if (weight_ <= kMaxValueBytes) return {};
    return Fail(errors::kGraphTooLarge,
                "a value has more than " + std::to_string(kMaxValueBytes) + " bytes");
  }
  std::size_t weight_ = 0;
};

std::int64_t WeightOf(const json::Value* value) {
  return value != nullptr ? static_cast<std::int64_t>(Weigh(*value)) : 0;
}

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

// Both give by how much the state has become heavier.
std::int64_t SetField(nodes::State& state, StateField field, const json::Value& value) {
  const std::int64_t before = WeightOf(state.Find(field));
  state.Set(field, value);
  return WeightOf(&value) - before;
}

std::int64_t MergeResults(nodes::State& state, const json::Value& entries) {
  json::Value& results = state.Mutable(StateField::kNodeResults);
  if (!results.is_object()) results = json::Object();
  json::Object& object = results.mutable_object();
  std::int64_t growth = 0;
  for (const auto& [key, value] : entries.as_object()) {
    const json::Value* before = object.Find(key);
    if (before == nullptr) growth += static_cast<std::int64_t>(key.size());
    growth += WeightOf(&value) - WeightOf(before);
    object.Set(key, value);
  }
  return growth;
}

std::int64_t Apply(nodes::State& state, std::span<const StepWrite> writes,
                   const std::optional<json::Value>& messages) {
  std::int64_t growth = 0;
  for (const StepWrite& write : writes) {
    for (std::size_t i = 0; i < kStateFields; ++i) {
      const StateField field = FieldAt(i);
      const json::Value* value = write.update->Find(field);
      if (value == nullptr || field == StateField::kMessages) continue;
      growth += field == StateField::kNodeResults ? MergeResults(state, *value)
                                                  : SetField(state, field, *value);
    }
  }
  if (messages) growth += SetField(state, StateField::kMessages, *messages);
  return growth;
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

Result<Update> StateUpdate(json::Value result) {
  if (!result.is_object()) {
    return Fail(errors::kGraphNodeFailed, "an update of the state must be a mapping");
  }
  Update update;
  for (std::size_t i = 0; i < kStateFields; ++i) {
    auto value = TakeField(result.mutable_object(), FieldAt(i));
    if (value) update.Set(FieldAt(i), *std::move(value));
  }
  return update;
}

std::size_t Weigh(const json::Value& value) {
  std::size_t weight = kValueCost;
  if (value.is_string()) {
    weight += value.as_string().size();
  } else if (value.is_array()) {
    for (const json::Value& item : value.as_array()) weight += Weigh(item);
  } else if (value.is_object()) {
    for (const auto& [key, member] : value.as_object()) weight += key.size() + Weigh(member);
  }
  return weight;
}

std::size_t Weigh(const Update& update) {
  std::size_t weight = 0;
  for (std::size_t i = 0; i < kStateFields; ++i) {
    if (const json::Value* value = update.Find(FieldAt(i))) weight += Weigh(*value);
  }
  return weight;
}

Result<std::size_t> CheckBounds(const json::Value& value) {
  Bounds bounds;
  CAISSON_TRY(bounds.Check(value, 1));
  return bounds.weight();
}

std::expected<std::int64_t, WriteFault> ApplyStep(nodes::State& state,
                                                  std::span<const StepWrite> writes,
                                                  const IdMaker& new_id, Update* delta) {
  if (writes.size() > 1) {
    if (auto checked = CheckConflicts(writes); !checked) {
      return std::unexpected(std::move(checked).error());
    }
  }
  auto messages = ReduceMessages(state, writes, new_id);
  if (!messages) return std::unexpected(std::move(messages).error());
  if (delta != nullptr) Apply(*delta, writes, *messages);
  return Apply(state, writes, *messages);
}

}  // namespace caisson::graph
