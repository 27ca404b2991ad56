// SPDX-License-Identifier: Apache-2.0
// WebhookTriggerNode: what a trigger's visit records of its configuration.
#include <set>

#include "errors/nodes.h"
#include "json/truth.h"
#include "nodes/families.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr Field kRateFields[] = {
    {.name = "limit", .kind = FieldKind::kInt, .default_json = "60", .minimum = 1},
    {.name = "interval_seconds", .kind = FieldKind::kInt, .default_json = "60", .minimum = 1},
};

Result<json::Value> CheckRate(const json::Value& value, std::string_view path) {
  for (const auto& [key, member] : value.as_object()) {
    if (key == kRateFields[0].name || key == kRateFields[1].name) continue;
    return Fail(errors::kNodesConfig, std::string(path) + "." + key +
                                          ": is no field of a rate limit, which has limit and "
                                          "interval_seconds");
  }
  CAISSON_ASSIGN(json::Array values, ValidateFields(kRateFields, value.as_object(), path));
  return json::Object{{"limit", values[0]}, {"interval_seconds", values[1]}};
}

enum : std::size_t {
  kTriggerType,
  kAllowedMethods,
  kRequiredHeaders,
  kRequiredQueryParams,
  kSecretHeader,
  kSecret,
  kRateLimit,
};
constexpr Field kFields[] = {
    {.name = "trigger_type", .kind = FieldKind::kString, .default_json = "\"webhook\""},
    {.name = "allowed_methods", .kind = FieldKind::kStringList, .default_json = "[\"POST\"]"},
    {.name = "required_headers", .kind = FieldKind::kStringMap, .default_json = "{}"},
    {.name = "required_query_params", .kind = FieldKind::kStringMap, .default_json = "{}"},
    {.name = "shared_secret_header", .kind = FieldKind::kString, .nullable = true},
    {.name = "shared_secret", .kind = FieldKind::kString, .nullable = true},
    {.name = "rate_limit", .kind = FieldKind::kObject, .nullable = true, .check = CheckRate},
};

Result<json::Value> RunWebhookTrigger(const Visit& visit) {
  CAISSON_ASSIGN(const json::Array fields, ValidateAgain(kFields, visit));
  std::set<std::string> methods;
  for (const json::Value& method : fields[kAllowedMethods].as_array()) {
    methods.insert(Upper(method.as_string()));
  }
  if (methods.empty()) return NodeFailed("At least one HTTP method must be allowed");
  json::Object headers;
  for (const auto& [name, value] : fields[kRequiredHeaders].as_object()) {
    headers.Set(Lower(name), value);
  }
  const json::Value& header = fields[kSecretHeader];
  const json::Value& secret = fields[kSecret];
  if (json::Truth(header) && !json::Truth(secret)) {
    return NodeFailed("shared_secret must be provided when shared_secret_header is set");
  }
  if (json::Truth(secret) && !json::Truth(header)) {
    return NodeFailed("shared_secret_header is required when shared_secret is provided");
  }
  json::Object config{
      {"allowed_methods", json::Array(methods.begin(), methods.end())},
      {"required_headers", std::move(headers)},
      {"required_query_params", fields[kRequiredQueryParams]},
      {"shared_secret_header", header.is_null() ? header : json::Value(Lower(header.as_string()))},
      {"shared_secret", secret},
      {"hmac_header", nullptr},
      {"hmac_secret", nullptr},
      {"hmac_algorithm", "sha256"},
      {"hmac_timestamp_header", nullptr},
      {"hmac_tolerance_seconds", 300},
      {"rate_limit", fields[kRateLimit]}};
  return json::Object{{"trigger_type", fields[kTriggerType]},
                      {"trigger_config", std::move(config)}};
}

}  // namespace

extern constexpr NodeType kWebhookTriggerNode{"WebhookTriggerNode", kFields, RunWebhookTrigger};

}  // namespace caisson::nodes
