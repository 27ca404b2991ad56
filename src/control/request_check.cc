// SPDX-License-Identifier: Apache-2.0
#include "control/request_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "errors/control.h"

namespace caisson::control {
namespace {

constexpr std::size_t kMaxLabels = 64;
constexpr std::size_t kMaxLabelKey = 63;
constexpr std::size_t kMaxLabelValue = 255;
constexpr std::size_t kShownKey = 64;

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsLabelKey(const std::string& key) {
  return !key.empty() && key.size() <= kMaxLabelKey && std::ranges::all_of(key, [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '.' || c == '_' || c == '/' || c == '-';
  });
}

std::string Shown(const std::string& key) { return key.substr(0, kShownKey); }

}  // namespace

std::unexpected<Status> FailAt(std::string field, ErrorCode code, std::string message) {
  return Fail(
      Status{.code = code, .message = std::move(message), .span = {}, .details = std::move(field)});
}

bool IsEnvName(std::string_view name) {
  return !name.empty() && !IsDigit(name.front()) &&
         std::ranges::all_of(name, [](char c) { return IsLetter(c) || IsDigit(c) || c == '_'; });
}

Result<void> CheckEnvs(const std::map<std::string, std::string>& envs, const std::string& field) {
  if (envs.size() > kMaxEnvs) {
    return FailAt(field, errors::kControlBadEnvs,
                  fmt::format("{} variables; at most {} are allowed", envs.size(), kMaxEnvs));
  }
  std::size_t bytes = 0;
  for (const auto& [name, value] : envs) {
    if (!IsEnvName(name)) {
      return FailAt(field, errors::kControlBadEnvs,
                    fmt::format("'{}' is no name of a variable: letters, digits and '_', the first "
                                "no digit",
                                Shown(name)));
    }
    if (value.size() > kMaxEnvValue || value.find('\0') != std::string::npos) {
      return FailAt(field + "." + Shown(name), errors::kControlBadEnvs,
                    fmt::format("a value has at most {} bytes and no NUL", kMaxEnvValue));
    }
    bytes += name.size() + value.size();
  }
  if (bytes > kMaxEnvBytes) {
    return FailAt(field, errors::kControlBadEnvs,
                  fmt::format("{} bytes in all; at most {} are allowed", bytes, kMaxEnvBytes));
  }
  return {};
}

Result<void> CheckLabels(const std::map<std::string, std::string>& labels) {
  if (labels.size() > kMaxLabels) {
    return FailAt("labels", errors::kControlBadLabels,
                  fmt::format("{} labels; at most {} are allowed", labels.size(), kMaxLabels));
  }
  for (const auto& [key, value] : labels) {
    if (!IsLabelKey(key)) {
      return FailAt("labels", errors::kControlBadLabels,
                    fmt::format("'{}' is no label: 1 to {} of letters, digits and ._/-", Shown(key),
                                kMaxLabelKey));
    }
    if (value.size() > kMaxLabelValue) {
      return FailAt("labels." + key, errors::kControlBadLabels,
                    fmt::format("a value has at most {} bytes", kMaxLabelValue));
    }
  }
  return {};
}

Result<void> CheckAutoPause(std::optional<std::int64_t> seconds) {
  if (!seconds || (*seconds >= kLeastAutoPause && *seconds <= kMostAutoPause)) return {};
  return FailAt("auto_pause_after_seconds", errors::kControlBadAutoPause,
                fmt::format("{} is not between {} and {} seconds", *seconds, kLeastAutoPause,
                            kMostAutoPause));
}

Result<void> CheckDeleteAfter(std::optional<std::int64_t> seconds) {
  if (!seconds || (*seconds >= 0 && *seconds <= kMostDeleteAfter)) return {};
  return FailAt(
      "delete_after_seconds", errors::kControlBadDeleteAfter,
      fmt::format("{} is not between 0 (never) and {} seconds", *seconds, kMostDeleteAfter));
}

Result<void> CheckOverrides(const std::map<std::string, std::string>& env,
                            const std::map<std::string, std::string>& declared) {
  for (const auto& [name, value] : env) {
    if (declared.contains(name)) continue;
    return FailAt(
        "env", errors::kControlUndeclaredEnv,
        fmt::format("{} was not declared in envs when the sandbox was created", Shown(name)));
  }
  return CheckEnvs(env, "env");
}

}  // namespace caisson::control
