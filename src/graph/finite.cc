// SPDX-License-Identifier: Apache-2.0
#include "graph/finite.h"

#include <cmath>
#include <string>

#include "errors/graph.h"

namespace caisson::graph {

bool FindNonJson(const json::Value& value, json::PathBuilder& path) {
  if (value.is_double()) return !std::isfinite(value.as_double());
  if (value.is_array()) {
    std::size_t index = 0;
    for (const json::Value& item : value.as_array()) {
      if (FindNonJson(item, path)) {
        path.PrependIndex(index);
        return true;
      }
      ++index;
    }
  } else if (value.is_object()) {
    for (const auto& [key, member] : value.as_object()) {
      if (FindNonJson(member, path)) {
        path.PrependKey(key);
        return true;
      }
    }
  }
  return false;
}

Result<void> CheckRecordable(const json::Value& value) {
  json::PathBuilder path;
  if (!FindNonJson(value, path)) return {};
  return Fail(Status{
      .code = errors::kGraphNotRecordable,
      .message = "the node's result has a number that is not finite at " + path.Finish() +
                 ", and a recorded run keeps JSON only",
      .details =
          "give another value for it, or run without a record (caisson run --durability none)"});
}

}  // namespace caisson::graph
