// SPDX-License-Identifier: Apache-2.0
// The excerpt of a state that nodes may put into their results.
#pragma once

#include "json/value.h"
#include "nodes/state.h"

namespace caisson::nodes {

// {"inputs": {...}, "node_results": {...}}; what is no object is shown as an empty one.
inline json::Value Snapshot(const State& state) {
  const auto object_or_empty = [&](StateField field) {
    const json::Value* value = state.Find(field);
    return value != nullptr && value->is_object() ? *value : json::Value(json::Object());
  };
  return json::Object{{"inputs", object_or_empty(StateField::kInputs)},
                      {"node_results", object_or_empty(StateField::kNodeResults)}};
}

}  // namespace caisson::nodes
