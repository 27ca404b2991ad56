// SPDX-License-Identifier: Apache-2.0
// SubWorkflowNode: a list of nodes, one after the other, on a copy of the state.
#include "json/truth.h"
#include "nodes/families.h"
#include "nodes/python_text.h"
#include "nodes/snapshot.h"

namespace caisson::nodes {
namespace {

enum : std::size_t { kSteps, kPropagate, kIncludeState, kResultStep };
constexpr Field kSubWorkflowFields[] = {
    {.name = "steps", .kind = FieldKind::kSteps, .default_json = "[]"},
    {.name = "propagate_to_parent", .kind = FieldKind::kBool, .default_json = "false"},
    {.name = "include_state", .kind = FieldKind::kBool, .default_json = "false"},
    {.name = "result_step", .kind = FieldKind::kString, .nullable = true},
};

// The part of the parent's state that steps see.
State SubState(const State& parent) {
  State state;
  const auto copy = [&](StateField field, const json::Value& fallback) {
    const json::Value* value = parent.Find(field);
    state.Set(field, value != nullptr && !value->is_null() ? *value : fallback);
  };
  copy(StateField::kInputs, json::Object());
  copy(StateField::kNodeResults, json::Object());
  copy(StateField::kMessages, json::Array());
  copy(StateField::kStructuredResponse, nullptr);
  copy(StateField::kConfig, nullptr);
  return state;
}

json::Value PayloadOf(const std::vector<StepResult>& results, const json::Value& wanted) {
  if (!json::Truth(wanted)) return results.back().payload;
  for (auto result = results.rbegin(); result != results.rend(); ++result) {
    if (wanted == json::Value(result->name)) return result->payload;
  }
  return nullptr;
}

Result<json::Value> RunSubWorkflow(const Visit& visit) {
  if (visit.host.StepCount() == 0) {
    return json::Object{{"steps", json::Array()}, {"result", nullptr}};
  }
  State state = SubState(visit.state);
  std::vector<StepResult> results;
  json::Array steps;
  json::Object propagated;
  for (std::size_t i = 0; i < visit.host.StepCount(); ++i) {
    CAISSON_ASSIGN(StepResult result, visit.host.RunStep(i, state));
    json::Value& known = state.Mutable(StateField::kNodeResults);
    if (!known.is_object()) known = json::Object();
    known.mutable_object().Set(result.name, result.payload);
    steps.emplace_back(json::Object{{"name", result.name}, {"result", result.payload}});
    if (result.name != visit.name) propagated.Set(result.name, result.payload);
    results.push_back(std::move(result));
  }
  json::Object payload;
  if (json::Truth(visit.fields[kPropagate])) payload.Set("node_results", std::move(propagated));
  payload.Set("steps", std::move(steps));
  payload.Set("result", PayloadOf(results, visit.fields[kResultStep]));
  if (json::Truth(visit.fields[kIncludeState])) payload.Set("state", Snapshot(state));
  return payload;
}

}  // namespace

extern constexpr NodeType kSubWorkflowNode{"SubWorkflowNode", kSubWorkflowFields, RunSubWorkflow};

}  // namespace caisson::nodes
