// SPDX-License-Identifier: Apache-2.0
// ManualTriggerNode: what a trigger's visit records of its configuration.
#include <unordered_set>

#include "nodes/families.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

enum : std::size_t {
  kTriggerType,
  kLabel,
  kAllowedActors,
  kRequireComment,
  kDefaultPayload,
  kCooldownSeconds,
};
constexpr Field kManualTriggerFields[] = {
    {.name = "trigger_type", .kind = FieldKind::kString, .default_json = "\"manual\""},
    {.name = "label", .kind = FieldKind::kString, .default_json = "\"manual\""},
    {.name = "allowed_actors", .kind = FieldKind::kStringList, .default_json = "[]"},
    {.name = "require_comment", .kind = FieldKind::kBool, .default_json = "false"},
    {.name = "default_payload", .kind = FieldKind::kObject, .default_json = "{}"},
    {.name = "cooldown_seconds", .kind = FieldKind::kInt, .default_json = "0"},
};

// Trimmed; blank ones and those that differ from an earlier one only in case are left out.
Result<json::Value> Actors(const json::Array& actors) {
  json::Array kept;
  std::unordered_set<std::string> seen;
  for (const json::Value& actor : actors) {
    if (!actor.is_string()) {
      return NodeFailed("allowed_actors must be strings, not " + std::string(PyType(actor)));
    }
    const std::string_view name = Strip(actor.as_string());
    if (!name.empty() && seen.insert(Lower(name)).second) kept.emplace_back(name);
  }
  return kept;
}

Result<json::Value> RunManualTrigger(const Visit& visit) {
  const json::Value& label = visit.fields[kLabel];
  if (!label.is_string()) {
    return NodeFailed("label must be a string, not " + std::string(PyType(label)));
  }
  const std::string_view trimmed = Strip(label.as_string());
  if (trimmed.empty()) return NodeFailed("label must be a non-empty string");
  CAISSON_ASSIGN(json::Value actors, Actors(visit.fields[kAllowedActors].as_array()));
  const json::Value& cooldown = visit.fields[kCooldownSeconds];
  if (cooldown.is_int() ? cooldown.as_int() < 0 : cooldown.as_bigint().starts_with('-')) {
    return NodeFailed("cooldown_seconds must be at least 0, not " + PyRepr(cooldown));
  }
  json::Object config{{"label", trimmed},
                      {"allowed_actors", std::move(actors)},
                      {"require_comment", visit.fields[kRequireComment]},
                      {"default_payload", visit.fields[kDefaultPayload]},
                      {"cooldown_seconds", cooldown},
                      {"last_dispatched_at", nullptr}};
  return json::Object{{"trigger_type", visit.fields[kTriggerType]},
                      {"trigger_config", std::move(config)}};
}

}  // namespace

extern constexpr NodeType kManualTriggerNode{"ManualTriggerNode", kManualTriggerFields,
                                             RunManualTrigger};

}  // namespace caisson::nodes
