// SPDX-License-Identifier: Apache-2.0
// CronTriggerNode: what a trigger's visit records of its configuration.
#include <chrono>
#include <fstream>
#include <optional>

#include "errors/nodes.h"
#include "nodes/cron.h"
#include "nodes/date_time.h"
#include "nodes/families.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr std::int64_t kShortestInterval = 300;  // seconds, of runs that may not overlap

enum : std::size_t { kTriggerType, kExpression, kTimezone, kAllowOverlapping, kStartAt, kEndAt };

// Any form of a point in time becomes the one in which it is shown.
Result<json::Value> CheckTime(const json::Value& value, std::string_view path) {
  std::optional<DateTime> time;
  if (value.is_string()) time = ParseConfiguredTime(value.as_string());
  if (value.is_number()) time = TimeOfNumber(value.ToDouble());
  if (time) return json::Value(FormatConfiguredTime(*time));
  return Fail(errors::kNodesConfig,
              std::string(path) + ": must be a date and time such as '2030-01-31T08:00:00Z'");
}

constexpr Field kFields[] = {
    {.name = "trigger_type", .kind = FieldKind::kString, .default_json = "\"cron\""},
    {.name = "expression", .kind = FieldKind::kString, .default_json = "\"0 * * * *\""},
    {.name = "timezone", .kind = FieldKind::kString, .default_json = "\"UTC\""},
    {.name = "allow_overlapping", .kind = FieldKind::kBool, .default_json = "true"},
    {.name = "start_at", .nullable = true, .check = CheckTime},
    {.name = "end_at", .nullable = true, .check = CheckTime},
};

// Whether the system's database has it.
bool IsTimezone(const std::string& name) {
  if (name == "UTC") return true;
  if (name.empty() || name.size() > 255 || name.starts_with('/') || name.ends_with('/') ||
      name.find('\0') != std::string::npos) {
    return false;
  }
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = std::string_view(name).substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  std::ifstream file("/usr/share/zoneinfo/" + name, std::ios::binary);
  char magic[4] = {};
  file.read(magic, sizeof magic);
  return file.gcount() == sizeof magic && std::string_view(magic, sizeof magic) == "TZif";
}

Result<std::optional<DateTime>> Boundary(const json::Value& value) {
  if (value.is_null()) return std::nullopt;
  const DateTime time = *ParseConfiguredTime(value.as_string());
  if (!time.offset) return NodeFailed("Cron boundaries must be timezone-aware");
  if (time.seconds % 60 != 0 || time.microseconds != 0) {
    return NodeFailed("Cron boundaries must align to whole minutes");
  }
  return time;
}

// Runs that may not overlap and come too often would block one another for good.
Result<void> CheckFrequency(const Cron& cron, const std::string& expression) {
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const auto first = cron.Next(now.count());
  const auto second = first ? cron.Next(*first) : std::nullopt;
  if (!second || *second - *first >= kShortestInterval) return {};
  return NodeFailed("Cron expression '" + expression + "' fires every " +
                    std::to_string(*second - *first) +
                    "s, but allow_overlapping is disabled. This risks permanently blocking the "
                    "schedule. Either increase the interval to at least 5 minutes or set "
                    "allow_overlapping to true.");
}

Result<json::Value> RunCronTrigger(const Visit& visit) {
  CAISSON_ASSIGN(const json::Array fields, ValidateAgain(kFields, visit));
  const std::string& expression = fields[kExpression].as_string();
  const auto cron = Cron::Parse(expression);
  if (!cron) return NodeFailed("Invalid cron expression: " + expression);
  const std::string& timezone = fields[kTimezone].as_string();
  if (!IsTimezone(timezone)) return NodeFailed("Unknown timezone '" + timezone + "'");
  CAISSON_ASSIGN(const auto start, Boundary(fields[kStartAt]));
  CAISSON_ASSIGN(const auto end, Boundary(fields[kEndAt]));
  if (start && end && start->utc_seconds() > end->utc_seconds()) {
    return NodeFailed("start_at must be earlier than end_at");
  }
  if (!fields[kAllowOverlapping].as_bool()) CAISSON_TRY(CheckFrequency(*cron, expression));
  json::Object config{{"expression", fields[kExpression]},
                      {"timezone", fields[kTimezone]},
                      {"allow_overlapping", fields[kAllowOverlapping]},
                      {"start_at", fields[kStartAt]},
                      {"end_at", fields[kEndAt]}};
  return json::Object{{"trigger_type", fields[kTriggerType]},
                      {"trigger_config", std::move(config)}};
}

}  // namespace

extern constexpr NodeType kCronTriggerNode{"CronTriggerNode", kFields, RunCronTrigger};

}  // namespace caisson::nodes
