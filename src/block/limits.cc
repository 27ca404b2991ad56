// SPDX-License-Identifier: Apache-2.0
#include "block/limits.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "errors/block.h"

namespace caisson::block {
namespace {

using isolate::ScriptLimits;
using std::chrono::milliseconds;

struct Limit {
  std::string_view name;
  std::uint64_t least;  // 0: may be uncounted
  std::uint64_t most;   // that the field holds
  std::uint64_t (*get)(const ScriptLimits&);
  void (*set)(ScriptLimits&, std::uint64_t);
};

constexpr std::uint64_t kMostBytes = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kMostMilliseconds = std::uint64_t{1000} * 3600 * 1000;

std::uint64_t Count(milliseconds time) { return static_cast<std::uint64_t>(time.count()); }
milliseconds Time(std::uint64_t count) { return milliseconds(static_cast<std::int64_t>(count)); }

constexpr std::array kLimits = {
    Limit{"wall_ms", 1, kMostMilliseconds,
          [](const ScriptLimits& limits) { return Count(limits.wall_clock); },
          [](ScriptLimits& limits, std::uint64_t value) { limits.wall_clock = Time(value); }},
    Limit{"cpu_ms", 0, kMostMilliseconds,
          [](const ScriptLimits& limits) { return Count(limits.cpu); },
          [](ScriptLimits& limits, std::uint64_t value) { limits.cpu = Time(value); }},
    Limit{"memory_bytes", 1, kMostBytes,
          [](const ScriptLimits& limits) { return limits.memory_bytes; },
          [](ScriptLimits& limits, std::uint64_t value) { limits.memory_bytes = value; }},
    Limit{"output_bytes", 0, kMostBytes,
          [](const ScriptLimits& limits) { return limits.output_bytes; },
          [](ScriptLimits& limits, std::uint64_t value) { limits.output_bytes = value; }},
    Limit{"messages", 0, kMostBytes, [](const ScriptLimits& limits) { return limits.messages; },
          [](ScriptLimits& limits, std::uint64_t value) { limits.messages = value; }},
    Limit{"stream_bytes", 0, kMostBytes,
          [](const ScriptLimits& limits) { return limits.stream_bytes; },
          [](ScriptLimits& limits, std::uint64_t value) { limits.stream_bytes = value; }},
    Limit{"disk_bytes", 0, kMostBytes, [](const ScriptLimits& limits) { return limits.disk_bytes; },
          [](ScriptLimits& limits, std::uint64_t value) { limits.disk_bytes = value; }},
    Limit{"pids", 0, std::numeric_limits<std::uint32_t>::max(),
          [](const ScriptLimits& limits) { return std::uint64_t{limits.pids}; },
          [](ScriptLimits& limits, std::uint64_t value) {
            limits.pids = static_cast<std::uint32_t>(value);
          }},
};

const Limit* FindLimit(std::string_view name) {
  for (const Limit& limit : kLimits) {
    if (limit.name == name) return &limit;
  }
  return nullptr;
}

bool IsAbove(const Limit& limit, std::uint64_t value, const ScriptLimits& maximum) {
  const std::uint64_t most = limit.get(maximum);
  return most != 0 && (value == 0 || value > most);
}

Status TooHigh(const Limit& limit, std::uint64_t value, const ScriptLimits& maximum) {
  const std::string most = std::to_string(limit.get(maximum));
  const std::string wish = value == 0 ? "0 (not counted)" : std::to_string(value);
  return {.code = errors::kBlockLimitTooHigh,
          .message = "the limit " + std::string(limit.name) + " is " + wish +
                     "; the operator allows at most " + most};
}

std::string AllNames() {
  std::string names;
  for (const Limit& limit : kLimits) {
    names.append(names.empty() ? "" : ", ").append(limit.name);
  }
  return names;
}

Result<std::uint64_t> ReadNumber(const Limit& limit, const json::Value& value) {
  const std::string name(limit.name);
  if (!value.is_int() || value.as_int() < 0) {
    return Fail(errors::kBlockRequest,
                "the limit " + name + " must be a whole number, 0 or above, below 2^63");
  }
  const auto number = static_cast<std::uint64_t>(value.as_int());
  if (number < limit.least || number > limit.most) {
    return Fail(errors::kBlockRequest, "the limit " + name + " must be from " +
                                           std::to_string(limit.least) + " to " +
                                           std::to_string(limit.most));
  }
  return number;
}

}  // namespace

json::Value LimitsToJson(const ScriptLimits& limits) {
  json::Object object;
  for (const Limit& limit : kLimits) object.Set(limit.name, limit.get(limits));
  return object;
}

std::expected<ScriptLimits, LimitRefusal> ReadLimits(const json::Value& wish,
                                                     const LimitPolicy& policy) {
  ScriptLimits limits = policy.defaults;
  if (!wish.is_object()) {
    return std::unexpected(
        LimitRefusal{{.code = errors::kBlockRequest, .message = "limits must be an object"}, ""});
  }
  for (const auto& [key, value] : wish.as_object()) {
    const Limit* limit = FindLimit(key);
    if (limit == nullptr) {
      return std::unexpected(LimitRefusal{
          {.code = errors::kBlockRequest, .message = "there is no such limit; " + AllNames()},
          key});
    }
    auto number = ReadNumber(*limit, value);
    if (!number) return std::unexpected(LimitRefusal{std::move(number).error(), key});
    if (IsAbove(*limit, *number, policy.maximum)) {
      return std::unexpected(LimitRefusal{TooHigh(*limit, *number, policy.maximum), key});
    }
    limit->set(limits, *number);
  }
  return limits;
}

Result<void> CheckPolicy(const LimitPolicy& policy) {
  for (const Limit& limit : kLimits) {
    const std::uint64_t value = limit.get(policy.defaults);
    if (IsAbove(limit, value, policy.maximum)) return Fail(TooHigh(limit, value, policy.maximum));
  }
  return {};
}

}  // namespace caisson::block
