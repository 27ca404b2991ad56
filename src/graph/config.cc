// SPDX-License-Identifier: Apache-2.0
#include <unordered_set>

#include "errors/graph.h"
#include "graph/run.h"
#include "nodes/python_text.h"

namespace caisson::graph {
namespace {

using nodes::Strip;

std::unexpected<Status> Wrong(std::string_view path, std::string_view what) {
  return Fail(errors::kGraphConfig,
              "the run configuration: $." + std::string(path) + " " + std::string(what));
}

Result<json::Object> ObjectMember(const json::Value& value, std::string_view key) {
  if (value.is_object()) return value.as_object();
  return Wrong(key, "must be an object");
}

Result<int> IntegerMember(const json::Value& value, std::string_view key, int maximum) {
  if (value.is_int() && value.as_int() >= 1 && value.as_int() <= maximum) {
    return static_cast<int>(value.as_int());
  }
  return Wrong(key, "must be an integer from 1 to " + std::to_string(maximum));
}

// Trimmed; blank ones and those that differ from an earlier one only in case are left out.
Result<std::vector<std::string>> Tags(const json::Value& value) {
  if (!value.is_array()) return Wrong("tags", "must be a list of texts");
  std::vector<std::string> tags;
  std::unordered_set<std::string> seen;
  for (const json::Value& item : value.as_array()) {
    if (!item.is_string()) return Wrong("tags", "must be a list of texts");
    const std::string_view tag = Strip(item.as_string());
    if (!tag.empty() && seen.insert(nodes::Lower(tag)).second) tags.emplace_back(tag);
  }
  return tags;
}

// Those that the peer's configuration does not have.
Result<void> SetOwnMember(RunConfig& config, const std::string& key, const json::Value& value) {
  const std::string path = "$." + key;
  if (key == "timeout_seconds") {
    CAISSON_ASSIGN(config.timeout, ParseSeconds(value, path));
  } else if (key == "node_timeout_seconds") {
    CAISSON_ASSIGN(config.policies.every.timeout, ParseSeconds(value, path));
  } else if (key == "retry") {
    CAISSON_ASSIGN(config.policies.every.retry, ParseRetry(value, path));
  } else if (key == "nodes") {
    CAISSON_ASSIGN(config.policies.nodes, ParseNodePolicies(value, path));
  } else if (key == "budget") {
    CAISSON_ASSIGN(config.budget, ParseUsageLimits(value, path));
  } else {
    return Wrong(key,
                 "is not known; use configurable, tags, metadata, callbacks, run_name, "
                 "recursion_limit, max_concurrency, timeout_seconds, node_timeout_seconds, retry, "
                 "nodes or budget");
  }
  return {};
}

Result<void> SetMember(RunConfig& config, const std::string& key, const json::Value& value) {
  if (key == "configurable") {
    CAISSON_ASSIGN(config.configurable, ObjectMember(value, key));
  } else if (key == "metadata") {
    CAISSON_ASSIGN(config.metadata, ObjectMember(value, key));
  } else if (key == "tags") {
    CAISSON_ASSIGN(config.tags, Tags(value));
  } else if (key == "callbacks") {
    if (!value.is_array()) return Wrong(key, "must be a list");
    config.callbacks = value.as_array();
  } else if (key == "run_name") {
    if (!value.is_string() && !value.is_null()) return Wrong(key, "must be a text");
    const std::string name(value.is_string() ? Strip(value.as_string()) : std::string_view());
    config.run_name = name.empty() ? std::nullopt : std::optional(name);
  } else if (key == "recursion_limit") {
    if (value.is_null()) return {};
    CAISSON_ASSIGN(config.recursion_limit, IntegerMember(value, key, kMaxRecursionLimit));
  } else if (key == "max_concurrency") {
    if (value.is_null()) return {};
    CAISSON_ASSIGN(config.max_concurrency, IntegerMember(value, key, kMaxConcurrency));
  } else {
    return SetOwnMember(config, key, value);
  }
  return {};
}

}  // namespace

Result<RunConfig> ParseRunConfig(const json::Value& config) {
  RunConfig parsed;
  if (!config.is_object()) {
    return Fail(errors::kGraphConfig, "the run configuration must be a JSON object");
  }
  for (const auto& [key, value] : config.as_object()) CAISSON_TRY(SetMember(parsed, key, value));
  return parsed;
}

}  // namespace caisson::graph
