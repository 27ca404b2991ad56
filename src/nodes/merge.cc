// SPDX-License-Identifier: Apache-2.0
// MergeNode.
#include <cmath>
#include <unordered_set>

#include "nodes/families.h"
#include "nodes/python_number.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr std::string_view kModes[] = {"auto", "dict", "list"};
enum : std::size_t { kItems, kMode, kDeep, kDeduplicate };
constexpr Field kMergeFields[] = {
    {.name = "items", .kind = FieldKind::kList, .default_json = "[]"},
    {.name = "mode", .kind = FieldKind::kChoice, .default_json = "\"auto\"", .choices = kModes},
    {.name = "deep", .kind = FieldKind::kBool, .default_json = "true"},
    {.name = "deduplicate", .kind = FieldKind::kBool, .default_json = "false"},
};

void DeepMerge(json::Object& base, const json::Object& incoming) {
  for (const auto& [key, value] : incoming) {
    json::Value* existing = value.is_object() ? base.FindMutable(key) : nullptr;
    if (existing != nullptr && existing->is_object()) {
      DeepMerge(existing->mutable_object(), value.as_object());
    } else {
      base.Set(key, value);
    }
  }
}

Result<json::Value> MergeObjects(const json::Array& items, bool deep) {
  json::Object merged;
  for (const json::Value& item : items) {
    if (!item.is_object()) {
      return NodeFailed("All items must be mappings when merging dictionaries");
    }
    if (deep) {
      DeepMerge(merged, item.as_object());
    } else {
      for (const auto& [key, value] : item.as_object()) merged.Set(key, value);
    }
  }
  return merged;
}

// A text that is the same for values that Python's == and hash() take for one: 1, 1.0 and True.
Result<std::string> HashText(const json::Value& value) {
  if (value.is_array() || value.is_object()) {
    return NodeFailed("unhashable type: '" + std::string(PyType(value)) + "'");
  }
  if (value.is_string()) return "s" + value.as_string();
  if (value.is_bool()) return value.as_bool() ? "1" : "0";
  if (!value.is_double()) return PyRepr(value);
  const double number = value.as_double();
  if (std::isfinite(number) && number == std::trunc(number)) return TruncatedText(number);
  return FloatRepr(number);
}

Result<json::Value> MergeLists(const json::Array& items, bool deduplicate) {
  json::Array merged;
  std::unordered_set<std::string> seen;
  for (const json::Value& item : items) {
    if (!item.is_array()) return NodeFailed("All items must be sequences when merging lists");
    for (const json::Value& value : item.as_array()) {
      if (deduplicate) {
        CAISSON_ASSIGN(std::string text, HashText(value));
        if (!seen.insert(std::move(text)).second) continue;
      }
      merged.push_back(value);
    }
  }
  return merged;
}

Result<json::Value> MergeItems(const Visit& visit) {
  const json::Array& items = visit.fields[kItems].as_array();
  std::string_view mode = visit.fields[kMode].as_string();
  if (items.empty()) {
    return mode == "list" ? json::Value(json::Array()) : json::Value(json::Object());
  }
  if (mode == "auto") {
    if (!items[0].is_object() && !items[0].is_array()) {
      return NodeFailed("Unable to infer merge mode; specify mode explicitly");
    }
    mode = items[0].is_object() ? "dict" : "list";
  }
  if (mode == "dict") return MergeObjects(items, visit.fields[kDeep].as_bool());
  return MergeLists(items, visit.fields[kDeduplicate].as_bool());
}

Result<json::Value> RunMerge(const Visit& visit) {
  CAISSON_ASSIGN(json::Value result, MergeItems(visit));
  return json::Object{{"result", std::move(result)}};
}

}  // namespace

extern constexpr NodeType kMergeNode{"MergeNode", kMergeFields, RunMerge};

}  // namespace caisson::nodes
