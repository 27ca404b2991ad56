// SPDX-License-Identifier: Apache-2.0
#include "graph/policy.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error_catalogue.h"
#include "errors/graph.h"

namespace caisson::graph {
namespace {

constexpr double kMostSeconds = 366.0 * 24 * 3600;

std::unexpected<Status> Wrong(const std::string& path, std::string_view what) {
  return Fail(errors::kGraphConfig, "the run configuration: " + path + " " + std::string(what));
}

using Member = std::function<Result<void>(const json::Value& value, const std::string& path)>;

// Hands each member of an object to whoever reads it; refuses those that nobody reads.
Result<void> ReadMembers(const json::Value& value, const std::string& path,
                         const std::map<std::string, Member, std::less<>>& members) {
  if (!value.is_object()) return Wrong(path, "must be an object");
  for (const auto& [key, member] : value.as_object()) {
    const auto reader = members.find(key);
    if (reader == members.end()) {
      std::string known;
      for (const auto& [name, unused] : members) known += (known.empty() ? "" : ", ") + name;
      return Wrong(path + "." + key, "is not known; it may have " + known);
    }
    CAISSON_TRY(reader->second(member, path + "." + key));
  }
  return {};
}

Result<std::int64_t> Count(const json::Value& value, const std::string& path, std::int64_t least,
                           std::int64_t most) {
  if (value.is_int() && value.as_int() >= least && value.as_int() <= most) return value.as_int();
  return Wrong(path,
               "must be an integer from " + std::to_string(least) + " to " + std::to_string(most));
}

Result<double> Number(const json::Value& value, const std::string& path, double least,
                      double most) {
  const double number = value.is_number() ? value.ToDouble() : least - 1;
  if (number >= least && number <= most) return number;
  return Wrong(path, "must be a number from " + std::to_string(static_cast<int>(least)) + " to " +
                         std::to_string(static_cast<int>(most)));
}

bool Matches(std::string_view pattern, std::string_view code) {
  if (pattern == "*" || pattern == code) return true;
  return pattern.ends_with(".*") && code.starts_with(pattern.substr(0, pattern.size() - 1));
}

bool MatchesSome(std::string_view pattern) {
  return std::ranges::any_of(ErrorCatalogue(),
                             [&](const ErrorEntry& entry) { return Matches(pattern, entry.code); });
}

Result<std::vector<std::string>> Codes(const json::Value& value, const std::string& path) {
  if (!value.is_array() || value.as_array().empty()) {
    return Wrong(path, "must be a list of error codes, such as \"model.unreachable\"");
  }
  std::vector<std::string> codes;
  for (const json::Value& code : value.as_array()) {
    if (!code.is_string() || !MatchesSome(code.as_string())) {
      return Wrong(path + "[" + std::to_string(codes.size()) + "]",
                   "names no error code; see api/errors.yaml, or use \"area.*\" or \"*\"");
    }
    codes.push_back(code.as_string());
  }
  return codes;
}

}  // namespace

const std::vector<std::string>& TransientCodes() {
  static const std::vector<std::string> kCodes{
      "graph.node_timed_out", "host.hung",       "host.lost",
      "isolate.worker_lost",  "model.cut",       "model.failed",
      "model.rate_limited",   "model.timed_out", "model.unavailable",
      "model.unreachable"};
  return kCodes;
}

bool IsRetried(const Retry& retry, ErrorCode code) {
  const auto& codes = retry.codes.empty() ? TransientCodes() : retry.codes;
  return std::ranges::any_of(codes, [&](const std::string& p) { return Matches(p, code.name); });
}

std::chrono::milliseconds WaitBefore(const Retry& retry, int attempt, double random) {
  const double longest = static_cast<double>(retry.longest.count());
  const double full = std::min(
      longest, static_cast<double>(retry.backoff.count()) * std::pow(retry.factor, attempt - 2));
  return std::chrono::milliseconds(std::llround(full * (1 - retry.jitter * random)));
}

const Retry* NodePolicies::RetryOf(std::string_view path) const {
  if (const auto own = nodes.find(path); own != nodes.end() && own->second.retry) {
    return &*own->second.retry;
  }
  return every.retry ? &*every.retry : nullptr;
}

std::optional<std::chrono::milliseconds> NodePolicies::TimeoutOf(std::string_view path) const {
  if (const auto own = nodes.find(path); own != nodes.end() && own->second.timeout) {
    return own->second.timeout;
  }
  return every.timeout;
}

Result<std::chrono::milliseconds> ParseSeconds(const json::Value& value, const std::string& path) {
  const double seconds = value.is_number() ? value.ToDouble() : 0;
  if (seconds >= 0.001 && seconds <= kMostSeconds) {
    return std::chrono::milliseconds(std::llround(seconds * 1000));
  }
  return Wrong(path, "must be a number of seconds, at least 0.001 and at most a year");
}

Result<Retry> ParseRetry(const json::Value& value, const std::string& path) {
  Retry retry;
  retry.count = 3;
  const std::map<std::string, Member, std::less<>> members{
      {"count",
       [&](const json::Value& member, const std::string& at) -> Result<void> {
         CAISSON_ASSIGN(const std::int64_t count, Count(member, at, 0, kMaxRetries));
         retry.count = static_cast<int>(count);
         return {};
       }},
      {"backoff_seconds",
       [&](const json::Value& member, const std::string& at) -> Result<void> {
         CAISSON_ASSIGN(retry.backoff, ParseSeconds(member, at));
         return {};
       }},
      {"factor",
       [&](const json::Value& member, const std::string& at) -> Result<void> {
         CAISSON_ASSIGN(retry.factor, Number(member, at, 1, 10));
         return {};
       }},
      {"max_seconds",
       [&](const json::Value& member, const std::string& at) -> Result<void> {
         CAISSON_ASSIGN(retry.longest, ParseSeconds(member, at));
         return {};
       }},
      {"jitter",
       [&](const json::Value& member, const std::string& at) -> Result<void> {
         CAISSON_ASSIGN(retry.jitter, Number(member, at, 0, 1));
         return {};
       }},
      {"codes", [&](const json::Value& member, const std::string& at) -> Result<void> {
         CAISSON_ASSIGN(retry.codes, Codes(member, at));
         return {};
       }}};
  CAISSON_TRY(ReadMembers(value, path, members));
  return retry;
}

Result<UsageLimits> ParseUsageLimits(const json::Value& value, const std::string& path) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  UsageLimits limits;
  const std::map<std::string, Member, std::less<>> members{
      {"nodes",
       [&](const json::Value& member, const std::string& at) -> Result<void> {
         CAISSON_ASSIGN(limits.nodes, Count(member, at, 1, kMost));
         return {};
       }},
      {"tokens",
       [&](const json::Value& member, const std::string& at) -> Result<void> {
         CAISSON_ASSIGN(limits.tokens, Count(member, at, 1, kMost));
         return {};
       }},
      {"isolate_seconds", [&](const json::Value& member, const std::string& at) -> Result<void> {
         CAISSON_ASSIGN(limits.isolate_time, ParseSeconds(member, at));
         return {};
       }}};
  CAISSON_TRY(ReadMembers(value, path, members));
  return limits;
}

Result<std::map<std::string, NodePolicy, std::less<>>> ParseNodePolicies(const json::Value& value,
                                                                         const std::string& path) {
  if (!value.is_object()) return Wrong(path, "must be an object of node paths");
  std::map<std::string, NodePolicy, std::less<>> nodes;
  for (const auto& [node, settings] : value.as_object()) {
    NodePolicy& policy = nodes[node];
    const std::map<std::string, Member, std::less<>> members{
        {"retry",
         [&](const json::Value& member, const std::string& at) -> Result<void> {
           CAISSON_ASSIGN(policy.retry, ParseRetry(member, at));
           return {};
         }},
        {"timeout_seconds", [&](const json::Value& member, const std::string& at) -> Result<void> {
           CAISSON_ASSIGN(policy.timeout, ParseSeconds(member, at));
           return {};
         }}};
    CAISSON_TRY(ReadMembers(settings, path + "." + node, members));
  }
  return nodes;
}

}  // namespace caisson::graph
