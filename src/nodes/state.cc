// SPDX-License-Identifier: Apache-2.0
#include "nodes/state.h"

#include <algorithm>
#include <iterator>

namespace caisson::nodes {

std::optional<StateField> FindStateField(std::string_view name) {
  const auto found = std::ranges::find(kStateFieldNames, name);
  if (found == kStateFieldNames.end()) return std::nullopt;
  return static_cast<StateField>(found - kStateFieldNames.begin());
}

const json::Value* State::Find(std::string_view name) const {
  const auto field = FindStateField(name);
  return field ? Find(*field) : nullptr;
}

json::Value State::ToJson() const {
  json::Object object;
  object.Reserve(kStateFields);
  for (std::size_t i = 0; i < kStateFields; ++i) {
    if (const json::Value* value = Find(static_cast<StateField>(i))) {
      object.Set(kStateFieldNames[i], *value);
    }
  }
  return object;
}

}  // namespace caisson::nodes
