// SPDX-License-Identifier: Apache-2.0
#include "capi/options.h"

#include <cstdint>
#include <limits>

#include "errors/library.h"
#include "http/outbound_guard.h"
#include "json/reader.h"

namespace caisson::capi {
namespace {

std::unexpected<Status> Refuse(std::string message) {
  return Fail(errors::kLibraryOptions, std::move(message));
}

// The members of one object, each of which is taken once; what is left is not known.
class Members {
 public:
  static Result<Members> Of(std::string_view text) {
    if (text.empty()) return Members("", json::Object{});
    CAISSON_ASSIGN(json::Value value, json::Read(text, {.reject_duplicate_keys = true}));
    if (!value.is_object()) return Refuse("the options must be a JSON object");
    return Members("", value.as_object());
  }

  Result<std::optional<json::Value>> Any(const std::string& name) {
    const json::Value* found = object_.Find(name);
    if (found == nullptr) return std::nullopt;
    json::Value value = *found;
    object_.Erase(name);
    return value;
  }

  Result<void> Take(const std::string& name, bool& out) {
    CAISSON_ASSIGN(const auto value, Any(name));
    if (!value) return {};
    if (!value->is_bool()) return Wrong(name, "true or false");
    out = value->as_bool();
    return {};
  }

  Result<void> Take(const std::string& name, std::string& out) {
    CAISSON_ASSIGN(const auto value, Any(name));
    if (!value) return {};
    const bool fits = value->is_string() && value->as_string().find('\0') == std::string::npos;
    if (!fits) return Wrong(name, "a string without NUL");
    out = value->as_string();
    return {};
  }

  Result<void> Take(const std::string& name, std::uint64_t& out, std::uint64_t least,
                    std::uint64_t most) {
    CAISSON_ASSIGN(const auto value, Any(name));
    if (!value) return {};
    const bool fits = value->is_int() && value->as_int() >= 0 &&
                      static_cast<std::uint64_t>(value->as_int()) >= least &&
                      static_cast<std::uint64_t>(value->as_int()) <= most;
    if (!fits) {
      return Wrong(name,
                   "an integer from " + std::to_string(least) + " to " + std::to_string(most));
    }
    out = static_cast<std::uint64_t>(value->as_int());
    return {};
  }

  // False when it is not there.
  Result<bool> Take(const std::string& name, Members& out) {
    CAISSON_ASSIGN(const auto value, Any(name));
    if (!value) return false;
    if (!value->is_object()) return Wrong(name, "an object");
    out = Members(name + ".", value->as_object());
    return true;
  }

  std::unexpected<Status> Wrong(const std::string& name, std::string_view form) const {
    return Refuse("the option '" + place_ + name + "' must be " + std::string(form));
  }

  Result<void> Finish() const {
    if (object_.empty()) return {};
    return Refuse("there is no option '" + place_ + object_.begin()->first + "'");
  }

  const json::Object& left() const { return object_; }
  Members() = default;

 private:
  Members(std::string place, json::Object object)
      : place_(std::move(place)), object_(std::move(object)) {}

  std::string place_;
  json::Object object_;
};

constexpr std::uint64_t kAny = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kMostMemory = 4ull << 30;  // of 32-bit WebAssembly
constexpr std::uint64_t kMostMilliseconds = 7ull * 24 * 3600 * 1000;
constexpr std::uint64_t kMostWorkers = 1024;

// `sizes` bounds what workers are made for.
Result<void> ReadLimits(Members& from, isolate::Limits& limits, const isolate::Limits& sizes) {
  Members members;
  CAISSON_ASSIGN(const bool given, from.Take("limits", members));
  if (!given) return {};
  CAISSON_TRY(members.Take("memory_bytes", limits.memory_bytes, 1, sizes.memory_bytes));
  CAISSON_TRY(members.Take("heap_bytes", limits.heap_bytes, 1, sizes.heap_bytes));
  CAISSON_TRY(members.Take("fuel", limits.fuel, 0, kAny));
  auto wall_clock = static_cast<std::uint64_t>(limits.wall_clock.count());
  CAISSON_TRY(members.Take("wall_clock_ms", wall_clock, 1, kMostMilliseconds));
  limits.wall_clock = std::chrono::milliseconds(wall_clock);
  CAISSON_TRY(members.Take("output_bytes", limits.output_bytes, 1, 1ull << 30));
  CAISSON_TRY(members.Take("stdout_bytes", limits.stdout_bytes, 0, 64ull << 20));
  return members.Finish();
}

// A worker has one snapshot, for one size of the heap.
Result<void> CheckHeap(const isolate::Limits& limits, const isolate::Limits& engine) {
  if (limits.heap_bytes == engine.heap_bytes) return {};
  return Refuse("the option 'limits.heap_bytes' must be that of the engine, " +
                std::to_string(engine.heap_bytes) + "; make another engine for another heap");
}

Result<void> ReadRuntime(const json::Value& value, const std::string& name,
                         workflow::CodeRuntime& out) {
  const auto runtime =
      value.is_string() ? workflow::FindCodeRuntime(value.as_string()) : std::nullopt;
  if (!runtime) return Refuse("the option '" + name + "' must be \"micropython\" or \"cpython\"");
  out = *runtime;
  return {};
}

Result<void> ReadRuntimes(Members& members, workflow::CodeRuntimes& out) {
  CAISSON_ASSIGN(const auto all, members.Any("runtime"));
  if (all) CAISSON_TRY(ReadRuntime(*all, "runtime", out.all));
  Members nodes;
  CAISSON_ASSIGN(const bool given, members.Take("node_runtimes", nodes));
  if (!given) return {};
  for (const auto& [id, value] : nodes.left()) {
    CAISSON_TRY(ReadRuntime(value, "node_runtimes." + id, out.nodes[id]));
  }
  return {};
}

Result<void> ReadCredentials(Members& members, CarryOptions& out) {
  Members secrets;
  CAISSON_ASSIGN(const bool given, members.Take("credentials", secrets));
  if (!given) return {};
  for (const auto& [name, secret] : secrets.left()) {
    if (!secret.is_string()) return secrets.Wrong(name, "a string");
    out.credentials.emplace_back(name, secret.as_string());
  }
  return {};
}

// "127.0.0.1:8080", from that or "http://127.0.0.1:8080".
Result<std::string> ReadEndpoint(const json::Value& value) {
  const std::string text = value.is_string() ? value.as_string() : "";
  const auto target =
      http::ReadTarget(text.find("://") == std::string::npos ? "http://" + text : text);
  const bool is_own = target && (target->host == "localhost" || target->host == "::1" ||
                                 target->host.starts_with("127."));
  if (is_own) return target->host + ":" + std::to_string(target->port);
  return Refuse(
      "the option 'allow_endpoints' must list HOST:PORT, where HOST is 127.0.0.1, ::1 or "
      "localhost; public servers need no permission");
}

Result<void> ReadEndpoints(Members& members, CarryOptions& out) {
  CAISSON_ASSIGN(const auto list, members.Any("allow_endpoints"));
  if (!list) return {};
  if (!list->is_array()) return members.Wrong("allow_endpoints", "an array");
  for (const json::Value& each : list->as_array()) {
    CAISSON_ASSIGN(std::string endpoint, ReadEndpoint(each));
    out.endpoints.push_back(std::move(endpoint));
  }
  return {};
}

Result<void> ReadCarry(Members& members, CarryOptions& out) {
  CAISSON_ASSIGN(out.config, members.Any("config"));
  CAISSON_TRY(members.Take("enforce_node_policy", out.enforce_node_policy));
  CAISSON_TRY(ReadCredentials(members, out));
  return ReadEndpoints(members, out);
}

Result<void> ReadPolicy(Members& members, graph::Policy& out) {
  std::string policy = "drop";
  CAISSON_TRY(members.Take("policy", policy));
  if (policy != "drop" && policy != "raise")
    return members.Wrong("policy", "\"drop\" or \"raise\"");
  out = policy == "raise" ? graph::Policy::kRaise : graph::Policy::kDrop;
  return {};
}

Result<void> ReadStore(Members& members, EngineOptions& out) {
  std::string store;
  std::string durability;
  CAISSON_TRY(members.Take("store", store));
  CAISSON_TRY(members.Take("durability", durability));
  if (!store.empty()) out.store = store;
  if (!durability.empty() && durability != "normal" && durability != "full") {
    return members.Wrong("durability", "\"normal\" or \"full\"");
  }
  if (!durability.empty() && !out.store) {
    return Refuse("the option 'durability' needs the option 'store': nothing is recorded without");
  }
  out.is_durable = durability == "full";
  return {};
}

}  // namespace

Result<workflow::CompileOptions> ReadCompileOptions(std::string_view text) {
  CAISSON_ASSIGN(Members members, Members::Of(text));
  workflow::CompileOptions options;
  CAISSON_TRY(members.Take("strict", options.strict));
  CAISSON_TRY(members.Take("enforce_node_policy", options.enforce_node_policy));
  CAISSON_TRY(ReadRuntimes(members, options.runtimes));
  CAISSON_TRY(members.Finish());
  return options;
}

Result<EngineOptions> ReadEngineOptions(std::string_view text) {
  CAISSON_ASSIGN(Members members, Members::Of(text));
  EngineOptions options;
  cli::IsolationArguments& isolation = options.isolation;
  CAISSON_TRY(members.Take("isolate", isolation.program));
  CAISSON_TRY(members.Take("data_dir", isolation.data_dir));
  CAISSON_TRY(members.Take("cache_dir", isolation.cache_dir));
  CAISSON_TRY(members.Take("allow_unjailed", isolation.allow_unjailed));
  std::uint64_t workers = 0;
  CAISSON_TRY(members.Take("workers", workers, 0, kMostWorkers));
  isolation.workers = static_cast<int>(workers);
  CAISSON_TRY(ReadLimits(members, isolation.limits,
                         {.memory_bytes = kMostMemory, .heap_bytes = kMostMemory}));
  CAISSON_TRY(ReadStore(members, options));
  CAISSON_TRY(members.Finish());
  return options;
}

Result<RunOptions> ReadRunOptions(std::string_view text, const isolate::Limits& most) {
  CAISSON_ASSIGN(Members members, Members::Of(text));
  RunOptions options;
  options.limits = most;
  CAISSON_TRY(ReadCarry(members, options.carry));
  CAISSON_TRY(ReadPolicy(members, options.policy));
  CAISSON_TRY(ReadLimits(members, options.limits, most));
  CAISSON_TRY(CheckHeap(options.limits, most));
  std::uint64_t timeout = 0;
  CAISSON_TRY(members.Take("timeout_ms", timeout, 1, kMostMilliseconds));
  if (timeout != 0) options.timeout = std::chrono::milliseconds(timeout);
  std::uint64_t state_bytes = options.state_bytes;
  CAISSON_TRY(members.Take("state_bytes", state_bytes, 1, kAny));
  options.state_bytes = state_bytes;
  CAISSON_TRY(ReadRuntimes(members, options.runtimes));
  CAISSON_TRY(members.Take("run_id", options.run_id));
  CAISSON_TRY(members.Take("name", options.name));
  CAISSON_TRY(members.Finish());
  return options;
}

Result<CarryOptions> ReadResumeOptions(std::string_view text) {
  CAISSON_ASSIGN(Members members, Members::Of(text));
  CarryOptions options;
  CAISSON_TRY(ReadCarry(members, options));
  CAISSON_TRY(members.Finish());
  return options;
}

Result<CallOptions> ReadCallOptions(std::string_view text, const isolate::Limits& most) {
  CAISSON_ASSIGN(Members members, Members::Of(text));
  CallOptions options;
  options.limits = most;
  CAISSON_TRY(members.Take("node_id", options.node_id));
  CAISSON_TRY(ReadLimits(members, options.limits, most));
  CAISSON_TRY(CheckHeap(options.limits, most));
  CAISSON_TRY(members.Finish());
  return options;
}

}  // namespace caisson::capi
