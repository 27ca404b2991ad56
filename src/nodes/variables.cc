// SPDX-License-Identifier: Apache-2.0
// SetVariableNode.
#include "nodes/families.h"
#include "nodes/path.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr Field kSetVariableFields[] = {
    {.name = "variables", .kind = FieldKind::kObject, .default_json = "{}"},
};

// Objects are merged into objects, everything else replaces.
void MergeInto(json::Object& base, const json::Object& incoming) {
  for (const auto& [key, value] : incoming) {
    json::Value* existing = value.is_object() ? base.FindMutable(key) : nullptr;
    if (existing != nullptr && existing->is_object()) {
      MergeInto(existing->mutable_object(), value.as_object());
    } else {
      base.Set(key, value);
    }
  }
}

Result<json::Value> RunSetVariable(const Visit& visit) {
  json::Object payload;
  for (const auto& [name, value] : visit.fields[0].as_object()) {
    json::Object assignment;
    if (name.find('.') == std::string::npos) {
      assignment.Set(name, value);
    } else {
      CAISSON_ASSIGN(const auto segments,
                     SplitPath(name, "target_path must contain at least one segment"));
      Assign(assignment, segments, value);
    }
    MergeInto(payload, assignment);
  }
  return payload;
}

}  // namespace

extern constexpr NodeType kSetVariableNode{"SetVariableNode", kSetVariableFields, RunSetVariable};

}  // namespace caisson::nodes
