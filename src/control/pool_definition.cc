// SPDX-License-Identifier: Apache-2.0
#include "control/pool_definition.h"

#include <fmt/format.h>

#include "control/request_check.h"
#include "errors/control.h"
#include "errors/store.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::control {
namespace {

using Texts = std::vector<std::string>;
using TextMap = std::map<std::string, std::string>;

json::Value ToJson(const std::string& text) { return text; }
json::Value ToJson(bool value) { return value; }
json::Value ToJson(std::int64_t value) { return value; }
json::Value ToJson(const Texts& texts) { return json::Array(texts.begin(), texts.end()); }
json::Value ToJson(const TextMap& map) {
  json::Object out;
  for (const auto& [key, text] : map) out.Set(key, text);
  return out;
}
json::Value ToJson(const std::optional<std::int64_t>& value) {
  return value ? json::Value(*value) : json::Value();
}

bool FromJson(const json::Value& value, std::string& out) {
  if (!value.is_string()) return false;
  out = value.as_string();
  return true;
}
bool FromJson(const json::Value& value, bool& out) {
  if (!value.is_bool()) return false;
  out = value.as_bool();
  return true;
}
bool FromJson(const json::Value& value, std::int64_t& out) {
  if (!value.is_int()) return false;
  out = value.as_int();
  return true;
}
bool FromJson(const json::Value& value, std::optional<std::int64_t>& out) {
  return value.is_null() || FromJson(value, out.emplace());
}
bool FromJson(const json::Value& value, Texts& out) {
  if (!value.is_array()) return false;
  for (const json::Value& item : value.as_array()) {
    if (!FromJson(item, out.emplace_back())) return false;
  }
  return true;
}
bool FromJson(const json::Value& value, TextMap& out) {
  if (!value.is_object()) return false;
  for (const auto& [key, item] : value.as_object()) {
    if (!FromJson(item, out[key])) return false;
  }
  return true;
}

// Which member stands under which name, for both directions.
template <typename Request, typename Visit>
void VisitRequest(Request& request, Visit visit) {
  visit("shape", request.shape);
  visit("rootfs", request.rootfs);
  visit("driver", request.driver);
  visit("disk_mib", request.disk_mib);
  visit("egress", request.egress);
  visit("envs", request.envs);
  visit("networks", request.networks);
  visit("labels", request.labels);
  visit("ingress_enabled", request.ingress_enabled);
  visit("ingress_token", request.ingress_token);
  visit("ingress_wake", request.ingress_wakes);
  visit("auto_pause_after_seconds", request.auto_pause_seconds);
  visit("delete_after_seconds", request.delete_after_seconds);
  visit("region", request.region);
  visit("host_id", request.host);
}
template <typename W, typename Visit>
void VisitWarm(W& warm, Visit visit) {
  visit("command", warm.command);
  visit("args", warm.args);
  visit("cwd", warm.cwd);
  visit("env", warm.env);
  visit("ready", warm.ready);
  visit("timeout_seconds", warm.timeout_seconds);
}

std::unexpected<Status> Wrong(const char* field, std::string message) {
  return FailAt(fmt::format("warm.{}", field), errors::kControlBadPool, std::move(message));
}

bool HasNul(const std::string& text) { return text.find('\0') != std::string::npos; }

}  // namespace

Result<void> CheckWarm(const Warm& warm) {
  if (warm.command.empty()) return Wrong("command", "$.warm.command is required");
  std::size_t bytes = warm.command.size() + warm.cwd.size() + warm.ready.size();
  bool has_nul = HasNul(warm.command) || HasNul(warm.cwd) || HasNul(warm.ready);
  for (const std::string& argument : warm.args) {
    bytes += argument.size() + 1;
    has_nul = has_nul || HasNul(argument);
  }
  if (has_nul) return Wrong("command", "a command and its arguments have no NUL");
  if (!warm.cwd.empty() && warm.cwd.front() != '/') {
    return Wrong("cwd", "$.warm.cwd must be an absolute path");
  }
  CAISSON_TRY(CheckEnvs(warm.env, "warm.env"));
  if (bytes > kMostWarmBytes) {
    return Wrong("args", fmt::format("command, arguments and the ready line have {} bytes at most; "
                                     "write what is longer to a file of the image or template",
                                     kMostWarmBytes));
  }
  if (warm.ready.find('\n') != std::string::npos) {
    return Wrong("ready", "$.warm.ready is one line, without its end");
  }
  if (warm.timeout_seconds < 1 || warm.timeout_seconds > kMostWarmSeconds) {
    return Wrong("timeout_seconds",
                 fmt::format("$.warm.timeout_seconds is from 1 to {}", kMostWarmSeconds));
  }
  return {};
}

std::string Write(const PoolDefinition& definition) {
  json::Object sandbox;
  VisitRequest(definition.sandbox,
               [&](const char* name, const auto& member) { sandbox.Set(name, ToJson(member)); });
  json::Object out{{"sandbox", std::move(sandbox)}};
  if (definition.warm) {
    json::Object warm;
    VisitWarm(*definition.warm,
              [&](const char* name, const auto& member) { warm.Set(name, ToJson(member)); });
    out.Set("warm", std::move(warm));
  }
  // Bytes that are no text do not come in as JSON, so that they cannot be here.
  return json::WriteCanonical(json::Value(std::move(out))).value_or("");
}

Result<PoolDefinition> ReadPoolDefinition(const std::string& text) {
  const auto value = json::Read(text);
  bool is_whole = value && value->is_object();
  const auto take = [&](const json::Value& from) {
    return [&](const char* name, auto& member) {
      const json::Value* found = from.Find(name);
      is_whole = is_whole && found != nullptr && FromJson(*found, member);
    };
  };
  PoolDefinition definition;
  const json::Value* sandbox = is_whole ? value->Find("sandbox") : nullptr;
  is_whole = sandbox != nullptr && sandbox->is_object();
  if (is_whole) VisitRequest(definition.sandbox, take(*sandbox));
  if (const json::Value* warm = is_whole ? value->Find("warm") : nullptr; warm != nullptr) {
    is_whole = warm->is_object();
    if (is_whole) VisitWarm(definition.warm.emplace(), take(*warm));
  }
  if (is_whole) return definition;
  return Fail(errors::kStoreFailed,
              "the definition of a pool cannot be read; delete the pool and define it anew");
}

CreateRequest Merge(const PoolDefinition& definition, CreateRequest request) {
  CreateRequest merged = definition.sandbox;
  merged.pool = std::move(request.pool);
  merged.name = std::move(request.name);
  for (auto& [key, value] : request.labels) merged.labels[key] = std::move(value);
  if (request.auto_pause_seconds) merged.auto_pause_seconds = request.auto_pause_seconds;
  if (request.delete_after_seconds) merged.delete_after_seconds = request.delete_after_seconds;
  return merged;
}

}  // namespace caisson::control
