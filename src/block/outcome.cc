// SPDX-License-Identifier: Apache-2.0
#include "block/outcome.h"

#include <algorithm>
#include <cmath>

#include "json/writer.h"

namespace caisson::block {
namespace {

constexpr std::size_t kMaxTextBytes = 64u << 10;
constexpr std::size_t kMaxFrames = 200;

// Members of an object, one after another.
class Members {
 public:
  Members& Raw(std::string_view name, std::string_view json) {
    if (!text_.empty()) text_ += ',';
    text_.append("\"").append(name).append("\":").append(json);
    return *this;
  }
  Members& Text(std::string_view name, std::string_view text) {
    std::string_view kept = text.substr(0, kMaxTextBytes);
    while (kept.size() < text.size() && !kept.empty() &&
           (static_cast<unsigned char>(text[kept.size()]) & 0xc0) == 0x80) {
      kept.remove_suffix(1);
    }
    const std::string_view cut = kept.size() < text.size() ? "..." : "";
    return Raw(name, json::Quote(std::string(kept).append(cut)));
  }
  Members& Count(std::string_view name, std::uint64_t count) {
    return Raw(name, std::to_string(count));
  }
  Members& Flag(std::string_view name, bool value) { return Raw(name, value ? "true" : "false"); }
  Members& Time(std::string_view name, std::chrono::nanoseconds time) {
    const double milliseconds = static_cast<double>(time.count()) / 1e6;
    return Raw(name, json::FormatDouble(std::round(milliseconds * 1000) / 1000));
  }
  std::string Object() const { return "{" + text_ + "}"; }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string EncodeFrames(const std::vector<isolate::TracebackFrame>& frames) {
  std::string text = "[";
  // Of a deep recursion the ends tell most.
  const std::size_t half = kMaxFrames / 2;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (frames.size() > kMaxFrames && i == half) i = frames.size() - half;
    if (text.size() > 1) text += ',';
    text += Members().Count("line", frames[i].line).Text("function", frames[i].function).Object();
  }
  return text + "]";
}

std::string EncodeDropped(const Dropped& dropped) {
  return Members()
      .Count("done", dropped.done)
      .Count("debug", dropped.debug)
      .Count("warning", dropped.warning)
      .Count("parts", dropped.parts)
      .Count("stdout_bytes", dropped.stdout_bytes)
      .Count("stderr_bytes", dropped.stderr_bytes)
      .Object();
}

std::string EncodeUsage(const BlockUsage& usage) {
  return Members()
      .Time("wall_ms", usage.wall)
      .Time("cpu_ms", usage.cpu)
      .Count("peak_memory_bytes", usage.peak_memory_bytes)
      .Count("output_bytes", usage.output_bytes)
      .Count("messages", usage.messages)
      .Object();
}

}  // namespace

std::string_view SettledByName(SettledBy settled_by) {
  switch (settled_by) {
    case SettledBy::kFinalDone:
      return "final_done";
    case SettledBy::kEnd:
      return "end";
    case SettledBy::kError:
      return "error";
    case SettledBy::kLimit:
      return "limit";
    case SettledBy::kCancel:
      return "cancel";
  }
  return "";
}

std::string EncodeError(const BlockError& error) {
  Members members;
  members.Text("code", error.code.name).Text("message", error.message);
  if (!error.type.empty()) members.Text("type", error.type);
  if (error.line != 0) members.Count("line", error.line);
  if (error.column != 0) members.Count("column", error.column);
  if (!error.frames.empty()) members.Raw("frames", EncodeFrames(error.frames));
  if (!error.traceback.empty()) members.Text("traceback", error.traceback);
  if (!error.limit.empty()) members.Text("limit", error.limit);
  if (error.exit_code) members.Raw("exit_code", std::to_string(*error.exit_code));
  return members.Object();
}

std::string EncodeOutcome(const BlockOutcome& outcome) {
  Members members;
  members.Flag("ok", outcome.ok())
      .Text("settled_by", SettledByName(outcome.settled_by))
      .Flag("no_result", outcome.no_result())
      .Count("results", outcome.results)
      .Raw("error", outcome.error ? EncodeError(*outcome.error) : "null");
  if (outcome.late_error) members.Raw("late_error", EncodeError(*outcome.late_error));
  members.Raw("dropped", EncodeDropped(outcome.dropped)).Raw("usage", EncodeUsage(outcome.usage));
  return members.Take();
}

}  // namespace caisson::block
