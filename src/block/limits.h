// SPDX-License-Identifier: Apache-2.0
// The limits of a run under the names that requests, errors and documentation use, and what an
// operator allows of them.
#pragma once

#include <string>

#include "base/status.h"
#include "isolate/script.h"
#include "json/value.h"

namespace caisson::block {

// The operator's word.
struct LimitPolicy {
  isolate::ScriptLimits defaults;
  // What a request may ask for at most. 0 (for those that may be uncounted): no maximum.
  isolate::ScriptLimits maximum = {.memory_bytes = std::uint64_t{4} << 30,
                                   .wall_clock = std::chrono::hours(1),
                                   .cpu = std::chrono::milliseconds(0),
                                   .output_bytes = std::uint64_t{1} << 30,
                                   .messages = 0,
                                   .stream_bytes = 64u << 20,
                                   .disk_bytes = std::uint64_t{1} << 30,
                                   .pids = 1024};
};

// {"wall_ms","cpu_ms","memory_bytes","output_bytes","messages","stream_bytes","disk_bytes","pids"}
json::Value LimitsToJson(const isolate::ScriptLimits& limits);

// A refused member: `path` is its key, "" for the whole.
struct LimitRefusal {
  Status status;
  std::string path;
};

// `wish` (an object of those members, each a whole number) over the defaults. Fails with
// block.request or block.limit_too_high.
std::expected<isolate::ScriptLimits, LimitRefusal> ReadLimits(const json::Value& wish,
                                                              const LimitPolicy& policy);

// block.limit_too_high when a default is above the maximum of its limit.
Result<void> CheckPolicy(const LimitPolicy& policy);

}  // namespace caisson::block
