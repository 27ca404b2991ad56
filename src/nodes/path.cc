// SPDX-License-Identifier: Apache-2.0
#include "nodes/path.h"

#include "nodes/python_number.h"
#include "nodes/python_text.h"

namespace caisson::nodes {

Result<std::vector<std::string>> SplitPath(std::string_view path, std::string_view when_empty) {
  std::vector<std::string> segments;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view segment = Strip(path.substr(begin, end - begin));
    if (!segment.empty()) segments.emplace_back(segment);
    if (segments.size() > kMaxPathSegments) {
      return NodeFailed("a path may have at most " + std::to_string(kMaxPathSegments) +
                        " segments; shorten '" + std::string(path.substr(0, 40)) + "...'");
    }
    begin = end + 1;
  }
  if (segments.empty()) return NodeFailed(std::string(when_empty));
  return segments;
}

namespace {

// The item that `segment` picks, nullptr when none.
Result<const json::Value*> PickItem(const json::Array& items, const std::string& segment,
                                    ListIndex list_index) {
  if (list_index == ListIndex::kDigits && !IsDigits(segment)) return nullptr;
  const auto digits = ParseInt(segment);
  if (!digits) {
    if (list_index == ListIndex::kInteger) return nullptr;
    return NodeFailed("invalid literal for int() with base 10: " + PyReprText(segment));
  }
  const json::Value index = json::Value::Integer(*digits);
  if (!index.is_int() || index.as_int() < 0) return nullptr;
  const auto position = static_cast<std::uint64_t>(index.as_int());
  return position < items.size() ? &items[position] : nullptr;
}

}  // namespace

Result<const json::Value*> Walk(const json::Value& root, const std::vector<std::string>& segments,
                                ListIndex list_index) {
  const json::Value* current = &root;
  for (const std::string& segment : segments) {
    if (current->is_object()) {
      current = current->Find(segment);
    } else if (current->is_array()) {
      CAISSON_ASSIGN(current, PickItem(current->as_array(), segment, list_index));
    } else {
      current = nullptr;
    }
    if (current == nullptr) return nullptr;
  }
  return current;
}

void Assign(json::Object& target, const std::vector<std::string>& segments, json::Value value) {
  json::Object* cursor = &target;
  for (std::size_t i = 0; i + 1 < segments.size(); ++i) {
    json::Value& next = (*cursor)[segments[i]];
    if (!next.is_object()) next = json::Object();
    cursor = &next.mutable_object();
  }
  cursor->Set(segments.back(), std::move(value));
}

}  // namespace caisson::nodes
