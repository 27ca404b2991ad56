// SPDX-License-Identifier: Apache-2.0
// DelayNode, ForLoopNode and NoOpTaskNode.
#include <algorithm>
#include <chrono>

#include "nodes/families.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr Field kDelayFields[] = {
    {.name = "duration_seconds", .kind = FieldKind::kFloat, .default_json = "0.0", .minimum = 0},
};

// Longer delays are as good as endless.
constexpr double kLongestDelaySeconds = 1e9;

Result<json::Value> RunDelay(const Visit& visit) {
  const double seconds = visit.fields[0].as_double();
  const std::chrono::duration<double> duration(std::min(seconds, kLongestDelaySeconds));
  CAISSON_TRY(visit.host.Sleep(std::chrono::duration_cast<std::chrono::nanoseconds>(duration)));
  return json::Object{{"duration_seconds", seconds}};
}

constexpr Field kForLoopFields[] = {
    {.name = "items", .kind = FieldKind::kListOrString, .required = true},
};

// The index that the node's own last visit left in the state.
Result<json::Value> OwnIndex(const Visit& visit) {
  const json::Value* results = visit.state.Find(StateField::kNodeResults);
  const json::Value* own = results != nullptr ? results->Find(visit.name) : nullptr;
  const json::Value* index = own != nullptr ? own->Find("index") : nullptr;
  if (index == nullptr || index->is_null()) return json::Value(0);
  return PyInt(*index);
}

Result<json::Value> RunForLoop(const Visit& visit) {
  const json::Value& items = visit.fields[0];
  if (!items.is_array()) {
    return json::Object{{"done", true}, {"index", 0}, {"total", 0}, {"current_item", nullptr}};
  }
  CAISSON_ASSIGN(const json::Value index, OwnIndex(visit));
  const auto total = static_cast<std::int64_t>(items.as_array().size());
  const bool huge = !index.is_int();
  if (huge ? !index.as_bigint().starts_with('-') : index.as_int() >= total) {
    return json::Object{{"done", true},
                        {"index", index},
                        {"iteration", index},
                        {"total", total},
                        {"current_item", nullptr}};
  }
  // As in Python, an index below zero counts from the end.
  if (huge) return NodeFailed("cannot fit 'int' into an index-sized integer");
  if (index.as_int() < -total) return NodeFailed("list index out of range");
  const std::int64_t position = index.as_int() + (index.as_int() < 0 ? total : 0);
  return json::Object{{"done", false},
                      {"index", index.as_int() + 1},
                      {"iteration", index.as_int() + 1},
                      {"total", total},
                      {"current_item", items.as_array()[static_cast<std::size_t>(position)]}};
}

Result<json::Value> RunNoOp(const Visit&) { return json::Object(); }

}  // namespace

extern constexpr NodeType kDelayNode{"DelayNode", kDelayFields, RunDelay};
extern constexpr NodeType kForLoopNode{"ForLoopNode", kForLoopFields, RunForLoop};
extern constexpr NodeType kNoOpTaskNode{"NoOpTaskNode", {}, RunNoOp};

}  // namespace caisson::nodes
