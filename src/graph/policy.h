// SPDX-License-Identifier: Apache-2.0
// What a run may use and how its nodes are tried again: the part of a run's configuration that the
// peer does not have. Read from the members `nodes`, `retry`, `timeout_seconds` and `budget`.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"

namespace caisson::graph {

inline constexpr int kMaxRetries = 100;

struct Retry {
  int count = 0;  // attempts after the first
  std::chrono::milliseconds backoff{500};
  double factor = 2;                          // from one wait to the next
  std::chrono::milliseconds longest{60'000};  // of a wait, before its jitter
  double jitter = 0.5;                        // the wait is shortened by up to that part of it
  // Codes of api/errors.yaml, "area.*", or "*"; empty: TransientCodes().
  std::vector<std::string> codes;
};
// What is tried again unless a configuration names codes: what may well pass by itself.
const std::vector<std::string>& TransientCodes();
bool IsRetried(const Retry& retry, ErrorCode code);
// Before attempt `attempt` (2 is the first retry). `random` lies in [0, 1).
std::chrono::milliseconds WaitBefore(const Retry& retry, int attempt, double random);

struct NodePolicy {
  std::optional<Retry> retry;
  std::optional<std::chrono::milliseconds> timeout;  // of each attempt
};

// Of all nodes, and of single ones by their path ("outer/inner"), whose members win.
struct NodePolicies {
  NodePolicy every;
  std::map<std::string, NodePolicy, std::less<>> nodes;

  bool empty() const { return !every.retry && !every.timeout && nodes.empty(); }
  const Retry* RetryOf(std::string_view path) const;
  std::optional<std::chrono::milliseconds> TimeoutOf(std::string_view path) const;
};

struct UsageLimits {
  std::optional<std::int64_t> nodes;                      // visits, retries included
  std::optional<std::int64_t> tokens;                     // of models, in and out
  std::optional<std::chrono::milliseconds> isolate_time;  // of code nodes, waiting included
};

// Each takes the value of one member; `path` names it. They fail with graph.config.
Result<Retry> ParseRetry(const json::Value& value, const std::string& path);
Result<std::chrono::milliseconds> ParseSeconds(const json::Value& value, const std::string& path);
Result<UsageLimits> ParseUsageLimits(const json::Value& value, const std::string& path);
Result<std::map<std::string, NodePolicy, std::less<>>> ParseNodePolicies(const json::Value& value,
                                                                         const std::string& path);

}  // namespace caisson::graph
