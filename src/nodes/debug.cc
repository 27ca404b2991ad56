// SPDX-License-Identifier: Apache-2.0
// DebugNode.
#include "json/truth.h"
#include "nodes/families.h"
#include "nodes/path.h"
#include "nodes/python_text.h"
#include "nodes/snapshot.h"

namespace caisson::nodes {
namespace {

enum : std::size_t { kMessage, kTapPath, kIncludeState };
constexpr Field kDebugFields[] = {
    {.name = "message", .kind = FieldKind::kString, .nullable = true},
    {.name = "tap_path", .kind = FieldKind::kString, .nullable = true},
    {.name = "include_state", .kind = FieldKind::kBool, .default_json = "false"},
};

// The tapped value within node_results, nullptr when there is none.
Result<const json::Value*> Tap(const Visit& visit, const json::Value& tap_path) {
  if (!tap_path.is_string()) {
    return NodeFailed("tap_path must be a string, not " + std::string(PyType(tap_path)) +
                      "; its template yielded a value of that type");
  }
  if (tap_path.as_string().empty()) return NodeFailed("tap_path must be a non-empty string");
  CAISSON_ASSIGN(const auto segments,
                 SplitPath(tap_path.as_string(), "tap_path must contain at least one segment"));
  const json::Value* results = visit.state.Find(StateField::kNodeResults);
  if (results == nullptr) return nullptr;
  return Walk(*results, segments, ListIndex::kInteger);
}

void LogVisit(const Visit& visit, const json::Value* tapped) {
  std::string text;
  if (json::Truth(visit.fields[kMessage])) text = PyStr(visit.fields[kMessage]);
  if (json::Truth(visit.fields[kTapPath])) {
    if (!text.empty()) text += " | ";
    text += "path=" + PyStr(visit.fields[kTapPath]) +
            " found=" + (tapped != nullptr ? "True" : "False") +
            " value=" + (tapped != nullptr ? PyRepr(*tapped) : "None");
  }
  if (!text.empty()) visit.host.Log(LogLevel::kInfo, "DebugNode " + visit.name + ": " + text);
}

Result<json::Value> RunDebug(const Visit& visit) {
  const json::Value* tapped = nullptr;
  if (!visit.fields[kTapPath].is_null()) {
    CAISSON_ASSIGN(tapped, Tap(visit, visit.fields[kTapPath]));
  }
  LogVisit(visit, tapped);
  json::Object payload{{"message", visit.fields[kMessage]},
                       {"tap_path", visit.fields[kTapPath]},
                       {"found", tapped != nullptr},
                       {"value", tapped != nullptr ? *tapped : json::Value()}};
  if (json::Truth(visit.fields[kIncludeState])) payload.Set("state", Snapshot(visit.state));
  return payload;
}

}  // namespace

extern constexpr NodeType kDebugNode{"DebugNode", kDebugFields, RunDebug};

}  // namespace caisson::nodes
