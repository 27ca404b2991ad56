// SPDX-License-Identifier: Apache-2.0
#include "capi/event_lines.h"

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "json/writer.h"
#include "workflow/diagnostic_format.h"

namespace caisson::capi {
namespace {

constexpr std::size_t kMostEntries = 1000;
constexpr std::array<std::string_view, 3> kLevels = {"info", "warning", "error"};

// What holds what, in docs/events.md.
constexpr std::array<std::string_view, 5> kDataMembers = {"inputs", "update", "result", "interrupt",
                                                          "answers"};

}  // namespace

void EventLines::Tell(json::Value event) {
  if (stop_.stop_requested()) return;
  Result<std::string> line = json::Write(event);
  if (!line) {
    // A value without JSON form in the state: the event goes without its data.
    for (const std::string_view member : kDataMembers) event.mutable_object().Erase(member);
    line = json::Write(event);
  }
  if (line && !sink_(*line)) stop_.request_stop();
}

void RunLog::Add(nodes::LogLevel level, std::string_view message) {
  const std::lock_guard lock(mutex_);
  if (entries_.size() == kMostEntries) return;
  entries_.emplace_back(json::Object{{"level", kLevels[static_cast<std::size_t>(level)]},
                                     {"message", workflow::internal::ValidUtf8(message)}});
}

json::Array RunLog::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(entries_, {});
}

}  // namespace caisson::capi
