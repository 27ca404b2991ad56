// SPDX-License-Identifier: Apache-2.0
#include "isolate/script_report.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "json/reader.h"

namespace caisson::isolate {
namespace {

constexpr std::size_t kMaxText = 64u << 10;
constexpr std::size_t kMaxFrames = 1000;

constexpr std::array<std::pair<std::string_view, Fault>, 6> kFaults = {{
    {"none", Fault::kNone},
    {"raised", Fault::kRaised},
    {"syntax", Fault::kSyntax},
    {"exited", Fault::kExited},
    {"memory", Fault::kMemory},
    {"protocol", Fault::kProtocol},
}};

std::optional<Fault> FaultNamed(const json::Value* name) {
  if (name == nullptr || !name->is_string()) return std::nullopt;
  for (const auto& [text, fault] : kFaults) {
    if (text == name->as_string()) return fault;
  }
  return std::nullopt;
}

std::string Text(const json::Value& report, std::string_view key) {
  const json::Value* value = report.Find(key);
  if (value == nullptr || !value->is_string()) return {};
  return std::string(std::string_view(value->as_string()).substr(0, kMaxText));
}

std::int64_t Number(const json::Value& report, std::string_view key, std::int64_t low,
                    std::int64_t high, std::int64_t beyond = 0) {
  const json::Value* value = report.Find(key);
  if (value == nullptr || !value->is_int()) return value == nullptr ? 0 : beyond;
  return value->as_int() < low || value->as_int() > high ? beyond : value->as_int();
}

std::uint32_t Position(const json::Value& report, std::string_view key) {
  return static_cast<std::uint32_t>(
      Number(report, key, 0, std::numeric_limits<std::uint32_t>::max()));
}

std::vector<TracebackFrame> Frames(const json::Value& report) {
  std::vector<TracebackFrame> frames;
  const json::Value* list = report.Find("frames");
  if (list == nullptr || !list->is_array()) return frames;
  for (const json::Value& entry : list->as_array()) {
    if (frames.size() == kMaxFrames) break;
    if (!entry.is_object()) continue;
    frames.push_back({.line = Position(entry, "line"), .function = Text(entry, "function")});
  }
  return frames;
}

}  // namespace

bool ReadScriptReport(std::string_view text, ScriptOutcome& outcome) {
  const auto report = json::Read(text);
  if (!report || !report->is_object()) return false;
  const std::optional<Fault> fault = FaultNamed(report->Find("fault"));
  if (!fault) return false;
  outcome.fault = *fault;
  if (*fault == Fault::kNone) return true;
  outcome.error_type = Text(*report, "type");
  outcome.message = Text(*report, "message");
  outcome.line = Position(*report, "line");
  outcome.column = Position(*report, "column");
  outcome.traceback = Frames(*report);
  outcome.traceback_text = Text(*report, "traceback");
  // What is out of range is no success.
  outcome.exit_code = static_cast<int>(Number(*report, "exit_code", -255, 255, 255));
  return true;
}

}  // namespace caisson::isolate
