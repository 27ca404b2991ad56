// SPDX-License-Identifier: Apache-2.0
#include "runs/settings.h"

#include "errors/runs.h"

namespace caisson::runs {
namespace {

std::unexpected<Status> Damaged(std::string_view member) {
  return Fail(errors::kRunsDamaged, "the settings of the run are damaged: their member '" +
                                        std::string(member) + "' is missing or of another type");
}

json::Value ToJson(const isolate::Limits& limits) {
  return json::Object{{"memory_bytes", limits.memory_bytes},
                      {"heap_bytes", limits.heap_bytes},
                      {"fuel", limits.fuel},
                      {"wall_clock_ms", static_cast<std::int64_t>(limits.wall_clock.count())},
                      {"output_bytes", limits.output_bytes},
                      {"stdout_bytes", limits.stdout_bytes}};
}

Result<std::uint64_t> Count(const json::Value& value, std::string_view member) {
  const json::Value* found = value.Find(member);
  if (found == nullptr || !found->is_int() || found->as_int() < 0) return Damaged(member);
  return static_cast<std::uint64_t>(found->as_int());
}

Result<isolate::Limits> LimitsFromJson(const json::Value& value) {
  isolate::Limits limits;
  CAISSON_ASSIGN(limits.memory_bytes, Count(value, "memory_bytes"));
  CAISSON_ASSIGN(limits.heap_bytes, Count(value, "heap_bytes"));
  CAISSON_ASSIGN(limits.fuel, Count(value, "fuel"));
  CAISSON_ASSIGN(const std::uint64_t wall_clock, Count(value, "wall_clock_ms"));
  limits.wall_clock = std::chrono::milliseconds(wall_clock);
  CAISSON_ASSIGN(limits.output_bytes, Count(value, "output_bytes"));
  CAISSON_ASSIGN(limits.stdout_bytes, Count(value, "stdout_bytes"));
  return limits;
}

json::Value ToJson(const workflow::CodeRuntimes& runtimes) {
  json::Object nodes;
  for (const auto& [id, runtime] : runtimes.nodes) nodes.Set(id, CodeRuntimeName(runtime));
  return json::Object{{"all", CodeRuntimeName(runtimes.all)}, {"nodes", std::move(nodes)}};
}

Result<workflow::CodeRuntime> RuntimeFromJson(const json::Value* value) {
  const auto runtime = value != nullptr && value->is_string()
                           ? workflow::FindCodeRuntime(value->as_string())
                           : std::nullopt;
  if (!runtime) return Damaged("runtimes");
  return *runtime;
}

Result<workflow::CodeRuntimes> RuntimesFromJson(const json::Value* value) {
  if (value == nullptr) return Damaged("runtimes");
  workflow::CodeRuntimes runtimes;
  CAISSON_ASSIGN(runtimes.all, RuntimeFromJson(value->Find("all")));
  const json::Value* nodes = value->Find("nodes");
  if (nodes == nullptr || !nodes->is_object()) return Damaged("runtimes");
  for (const auto& [id, runtime] : nodes->as_object()) {
    CAISSON_ASSIGN(runtimes.nodes[id], RuntimeFromJson(&runtime));
  }
  return runtimes;
}

}  // namespace

json::Value ToJson(const Settings& settings) {
  json::Object object{{"document", settings.document},
                      {"policy", settings.policy == graph::Policy::kRaise ? "raise" : "drop"},
                      {"runtimes", ToJson(settings.runtimes)},
                      {"limits", ToJson(settings.limits)},
                      {"state_bytes", static_cast<std::uint64_t>(settings.state_bytes)}};
  if (settings.timeout) {
    object.Set("timeout_ms", static_cast<std::int64_t>(settings.timeout->count()));
  }
  return object;
}

Result<Settings> SettingsFromJson(const json::Value& value) {
  Settings settings;
  const json::Value* document = value.Find("document");
  const json::Value* policy = value.Find("policy");
  const json::Value* limits = value.Find("limits");
  if (document == nullptr) return Damaged("document");
  if (policy == nullptr) return Damaged("policy");
  if (limits == nullptr) return Damaged("limits");
  settings.document = *document;
  settings.policy = *policy == json::Value("raise") ? graph::Policy::kRaise : graph::Policy::kDrop;
  CAISSON_ASSIGN(settings.runtimes, RuntimesFromJson(value.Find("runtimes")));
  CAISSON_ASSIGN(settings.limits, LimitsFromJson(*limits));
  CAISSON_ASSIGN(settings.state_bytes, Count(value, "state_bytes"));
  if (value.Find("timeout_ms") != nullptr) {
    CAISSON_ASSIGN(const std::uint64_t timeout, Count(value, "timeout_ms"));
    settings.timeout = std::chrono::milliseconds(timeout);
  }
  return settings;
}

Result<graph::RunConfig> ConfigOf(const Settings& settings, std::string run_id) {
  CAISSON_ASSIGN(graph::RunConfig config, graph::ParseRunConfig(settings.document));
  config.policy = settings.policy;
  config.runtimes = settings.runtimes;
  config.limits = settings.limits;
  config.state_bytes = settings.state_bytes;
  if (settings.timeout) config.timeout = settings.timeout;
  config.run_id = std::move(run_id);
  return config;
}

}  // namespace caisson::runs
