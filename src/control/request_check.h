// SPDX-License-Identifier: Apache-2.0
// The rules for what a request may say about a sandbox that need no store. The `details` of a
// Status are the JSON path of the field.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/status.h"

namespace caisson::control {

inline constexpr std::size_t kMaxEnvs = 64;
inline constexpr std::size_t kMaxEnvValue = 4096;
inline constexpr std::size_t kMaxEnvBytes = 64 << 10;
inline constexpr std::int64_t kLeastAutoPause = 60;
inline constexpr std::int64_t kMostAutoPause = 86400;
inline constexpr std::int64_t kMostDeleteAfter = std::int64_t{366} * 86400;

bool IsEnvName(std::string_view name);  // [A-Za-z_][A-Za-z0-9_]*
// control.bad_envs; `field` is "envs".
Result<void> CheckEnvs(const std::map<std::string, std::string>& envs, const std::string& field);
// control.bad_labels: at most 64 of them; keys of [A-Za-z0-9._/-], 1 to 63; values up to 255 bytes.
Result<void> CheckLabels(const std::map<std::string, std::string>& labels);
Result<void> CheckAutoPause(std::optional<std::int64_t> seconds);    // control.bad_auto_pause
Result<void> CheckDeleteAfter(std::optional<std::int64_t> seconds);  // control.bad_delete_after
// Everything that `env` sets is a key of `declared`; control.undeclared_env.
Result<void> CheckOverrides(const std::map<std::string, std::string>& env,
                            const std::map<std::string, std::string>& declared);

// The unexpected Status with the path of its field.
std::unexpected<Status> FailAt(std::string field, ErrorCode code, std::string message);

}  // namespace caisson::control
