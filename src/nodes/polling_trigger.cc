// SPDX-License-Identifier: Apache-2.0
// HttpPollingTriggerNode: what a trigger's visit records of its configuration.
#include <algorithm>

#include "errors/nodes.h"
#include "http/web_url.h"
#include "nodes/families.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr std::string_view kMethods[] = {"DELETE", "GET", "PATCH", "POST", "PUT"};

enum : std::size_t {
  kTriggerType,
  kUrl,
  kMethod,
  kHeaders,
  kQueryParams,
  kBody,
  kInterval,
  kTimeout,
  kVerifyTls,
  kFollowRedirects,
  kDeduplicateOn,
};

Result<json::Value> CheckUrl(const json::Value& value, std::string_view path) {
  if (auto url = http::NormalWebUrl(value.as_string())) return json::Value(*std::move(url));
  return Fail(errors::kNodesConfig,
              std::string(path) + ": must be a URL that begins with http:// or https://");
}

constexpr Field kFields[] = {
    {.name = "trigger_type", .kind = FieldKind::kString, .default_json = "\"http_polling\""},
    {.name = "url", .kind = FieldKind::kString, .required = true, .check = CheckUrl},
    {.name = "method", .kind = FieldKind::kString, .default_json = "\"GET\""},
    {.name = "headers", .kind = FieldKind::kStringMap, .default_json = "{}"},
    {.name = "query_params", .kind = FieldKind::kStringMap, .default_json = "{}"},
    {.name = "body", .kind = FieldKind::kObject, .nullable = true},
    {.name = "interval_seconds", .kind = FieldKind::kInt, .default_json = "300"},
    {.name = "timeout_seconds", .kind = FieldKind::kInt, .default_json = "30"},
    {.name = "verify_tls", .kind = FieldKind::kBool, .default_json = "true"},
    {.name = "follow_redirects", .kind = FieldKind::kBool, .default_json = "false"},
    {.name = "deduplicate_on", .kind = FieldKind::kString, .nullable = true},
};

json::Object Trimmed(const json::Object& fields) {
  json::Object trimmed;
  for (const auto& [name, value] : fields) trimmed.Set(Strip(name), value);
  return trimmed;
}

Result<void> Within(const json::Value& value, std::string_view name, int least, int most) {
  if (value.is_int() && value.as_int() >= least && value.as_int() <= most) return {};
  return NodeFailed(std::string(name) + " must be from " + std::to_string(least) + " to " +
                    std::to_string(most) + ", not " + PyStr(value));
}

Result<json::Value> Pointer(const json::Value& value) {
  if (value.is_null()) return value;
  const std::string_view pointer = Strip(value.as_string());
  if (pointer.starts_with('/')) return json::Value(pointer);
  return NodeFailed("deduplicate_on must be a JSON pointer starting with '/'");
}

Result<json::Value> RunPollingTrigger(const Visit& visit) {
  CAISSON_ASSIGN(const json::Array fields, ValidateAgain(kFields, visit));
  const std::string method = Upper(Strip(fields[kMethod].as_string()));
  if (std::ranges::find(kMethods, std::string_view(method)) == std::end(kMethods)) {
    return NodeFailed("HTTP polling method must be one of DELETE, GET, PATCH, POST, PUT");
  }
  CAISSON_ASSIGN(const json::Value pointer, Pointer(fields[kDeduplicateOn]));
  CAISSON_TRY(Within(fields[kInterval], "interval_seconds", 10, 86400));
  CAISSON_TRY(Within(fields[kTimeout], "timeout_seconds", 1, 300));
  json::Object config{{"url", fields[kUrl]},
                      {"method", method},
                      {"headers", Trimmed(fields[kHeaders].as_object())},
                      {"query_params", Trimmed(fields[kQueryParams].as_object())},
                      {"body", fields[kBody]},
                      {"interval_seconds", fields[kInterval]},
                      {"timeout_seconds", fields[kTimeout]},
                      {"verify_tls", fields[kVerifyTls]},
                      {"follow_redirects", fields[kFollowRedirects]},
                      {"deduplicate_on", pointer}};
  return json::Object{{"trigger_type", fields[kTriggerType]},
                      {"trigger_config", std::move(config)}};
}

}  // namespace

extern constexpr NodeType kHttpPollingTriggerNode{"HttpPollingTriggerNode", kFields,
                                                  RunPollingTrigger};

}  // namespace caisson::nodes
