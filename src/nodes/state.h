// SPDX-License-Identifier: Apache-2.0
// The state of a run: seven fields, each absent until it is first written. A State is a value:
// copies are cheap (its JSON is shared and copied on write) and independent of one another. It
// knows no reducers; see graph/reducer.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "json/value.h"

namespace caisson::nodes {

// In the order in which a state is shown.
enum class StateField : std::uint8_t {
  kMessages,
  kWorkspaceId,
  kInputs,
  kNodeResults,
  kStructuredResponse,
  kConfig,
  kAssistantMessage,
};
inline constexpr std::size_t kStateFields = 7;
inline constexpr std::array<std::string_view, kStateFields> kStateFieldNames = {
    "messages", "workspace_id",     "inputs", "node_results", "structured_response",
    "config",   "assistant_message"};

// The field of that name, if there is one.
std::optional<StateField> FindStateField(std::string_view name);

class State {
 public:
  // nullptr while the field is absent (a field may be present and null).
  const json::Value* Find(StateField field) const {
    return (present_ & Bit(field)) != 0 ? &values_[Index(field)] : nullptr;
  }
  const json::Value* Find(std::string_view name) const;
  void Set(StateField field, json::Value value) {
    values_[Index(field)] = std::move(value);
    present_ |= Bit(field);
  }
  // Mutable access to a field that becomes present (null) when it was absent.
  json::Value& Mutable(StateField field) {
    present_ |= Bit(field);
    return values_[Index(field)];
  }
  // An object of the present fields, in the order above.
  json::Value ToJson() const;

 private:
  static constexpr std::size_t Index(StateField field) { return static_cast<std::size_t>(field); }
  static constexpr std::uint8_t Bit(StateField field) {
    return static_cast<std::uint8_t>(1u << Index(field));
  }
  std::array<json::Value, kStateFields> values_;
  std::uint8_t present_ = 0;
};

}  // namespace caisson::nodes
