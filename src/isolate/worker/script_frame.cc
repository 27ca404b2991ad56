// SPDX-License-Identifier: Apache-2.0
#include "isolate/worker/script_frame.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "isolate/worker/frame_text.h"

namespace caisson::isolate {
namespace {

constexpr std::size_t kMaxImports = 4096;
// What an end may have: its texts and the traceback.
constexpr std::uint64_t kEndBytes = 8u << 20;
constexpr std::uint32_t kAnySize = std::numeric_limits<std::uint32_t>::max();

std::uint64_t Count(std::chrono::milliseconds time) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
}

std::chrono::milliseconds Milliseconds(std::uint64_t count) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(count, kMost)));
}

void PutLimits(FrameWriter& writer, const ScriptLimits& limits) {
  writer.U64(limits.memory_bytes);
  writer.U64(Count(limits.wall_clock));
  writer.U64(Count(limits.cpu));
  writer.U64(limits.output_bytes);
  writer.U64(limits.messages);
  writer.U64(limits.stream_bytes);
  writer.U64(limits.disk_bytes);
  writer.U32(limits.pids);
}

ScriptLimits GetLimits(BodyReader& reader) {
  ScriptLimits limits;
  limits.memory_bytes = reader.U64();
  limits.wall_clock = Milliseconds(reader.U64());
  limits.cpu = Milliseconds(reader.U64());
  limits.output_bytes = reader.U64();
  limits.messages = reader.U64();
  limits.stream_bytes = reader.U64();
  limits.disk_bytes = reader.U64();
  limits.pids = reader.U32();
  return limits;
}

std::chrono::nanoseconds Nanoseconds(std::uint64_t count) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(count, kMost)));
}

}  // namespace

OutgoingFrame EncodeScriptJob(const ScriptJob& job) {
  FrameWriter writer(FrameType::kScriptJob);
  writer.U8(static_cast<std::uint8_t>(job.entry));
  PutLimits(writer, job.limits);
  const std::size_t imports = std::min(job.imports.size(), kMaxImports);
  writer.U32(static_cast<std::uint32_t>(imports));
  for (std::size_t i = 0; i < imports; ++i) writer.Text(job.imports[i], kMaxNameBytes);
  writer.Text(job.options, kAnySize);
  writer.Text(job.source, kAnySize);
  return {writer.Take(job.inputs.size()), job.inputs};
}

std::string EncodeCancelScript() { return FrameWriter(FrameType::kCancelScript).Take(); }

OutgoingFrame EncodeScriptMessage(const ScriptMessage& message) {
  FrameWriter writer(FrameType::kScriptMessage);
  writer.U8(static_cast<std::uint8_t>(message.kind));
  writer.U8(message.final ? 1 : 0);
  return {writer.Take(message.text.size()), message.text};
}

std::string EncodeScriptEnd(const ScriptOutcome& outcome) {
  FrameWriter writer(FrameType::kScriptEnd);
  writer.U8(static_cast<std::uint8_t>(outcome.fault));
  writer.Text(outcome.error_type, kMaxNameBytes);
  writer.Text(outcome.message, kMaxMessageBytes);
  writer.U32(outcome.line);
  writer.U32(outcome.column);
  const std::size_t frames = std::min(outcome.traceback.size(), kMaxFrames);
  writer.U32(static_cast<std::uint32_t>(frames));
  for (std::size_t i = outcome.traceback.size() - frames; i < outcome.traceback.size(); ++i) {
    writer.U32(outcome.traceback[i].line);
    writer.Text(outcome.traceback[i].function, 256);
  }
  writer.Text(outcome.traceback_text, kMaxMessageBytes);
  writer.U32(static_cast<std::uint32_t>(outcome.exit_code));
  for (const std::uint64_t number :
       {outcome.stdout_dropped, outcome.stderr_dropped, outcome.late_done, outcome.late_debug,
        static_cast<std::uint64_t>(outcome.usage.wall.count()), outcome.usage.memory_bytes,
        outcome.usage.output_bytes, static_cast<std::uint64_t>(outcome.cpu.count())}) {
    writer.U64(number);
  }
  return writer.Take();
}

std::string EncodeScriptStatus(const Status& status) {
  FrameWriter writer(FrameType::kStatus);
  PutStatus(writer, status);
  return writer.Take();
}

std::optional<ScriptJob> DecodeScriptJob(std::string_view body) {
  BodyReader reader(body);
  ScriptJob job;
  const std::uint8_t entry = reader.U8();
  reader.Require(entry <= static_cast<std::uint8_t>(ScriptEntry::kBody));
  job.entry = static_cast<ScriptEntry>(entry);
  job.limits = GetLimits(reader);
  const std::uint32_t imports = reader.U32();
  reader.Require(imports <= kMaxImports);
  for (std::uint32_t i = 0; i < imports && reader.ok(); ++i) {
    job.imports.emplace_back(reader.Text(kMaxNameBytes));
  }
  job.options = reader.Text(kAnySize);
  job.source = reader.Text(kAnySize);
  job.inputs = reader.Rest();
  if (!reader.ok()) return std::nullopt;
  return job;
}

std::optional<ScriptMessage> DecodeScriptMessage(std::string_view body) {
  BodyReader reader(body);
  ScriptMessage message;
  const std::uint8_t kind = reader.U8();
  const std::uint8_t final = reader.U8();
  reader.Require(kind >= static_cast<std::uint8_t>(MessageKind::kDone) &&
                 kind <= static_cast<std::uint8_t>(MessageKind::kStderr) && final <= 1);
  message.kind = static_cast<MessageKind>(kind);
  message.final = final == 1;
  message.text = reader.Rest();
  if (!reader.ok()) return std::nullopt;
  return message;
}

std::optional<ScriptOutcome> DecodeScriptEnd(std::string_view body) {
  BodyReader reader(body);
  ScriptOutcome outcome;
  const std::uint8_t fault = reader.U8();
  reader.Require(fault <= static_cast<std::uint8_t>(Fault::kKilled));
  outcome.fault = static_cast<Fault>(fault);
  outcome.error_type = ToValidUtf8(reader.Text(kMaxNameBytes));
  outcome.message = ToValidUtf8(reader.Text(kMaxMessageBytes));
  outcome.line = reader.U32();
  outcome.column = reader.U32();
  const std::uint32_t frames = reader.U32();
  reader.Require(frames <= kMaxFrames);
  for (std::uint32_t i = 0; i < frames && reader.ok(); ++i) {
    const std::uint32_t line = reader.U32();
    outcome.traceback.push_back({line, ToValidUtf8(reader.Text(256))});
  }
  outcome.traceback_text = ToValidUtf8(reader.Text(kMaxMessageBytes));
  outcome.exit_code = static_cast<int>(reader.U32());
  outcome.stdout_dropped = reader.U64();
  outcome.stderr_dropped = reader.U64();
  outcome.late_done = reader.U64();
  outcome.late_debug = reader.U64();
  outcome.usage.wall = Nanoseconds(reader.U64());
  outcome.usage.memory_bytes = reader.U64();
  outcome.usage.output_bytes = reader.U64();
  outcome.cpu = Nanoseconds(reader.U64());
  if (!reader.AtEnd()) return std::nullopt;
  return outcome;
}

std::optional<Status> DecodeScriptStatus(std::string_view body) {
  BodyReader reader(body);
  Status status = GetStatus(reader);
  if (!reader.AtEnd()) return std::nullopt;
  return status;
}

std::uint64_t MaxScriptFrameBytes(const ScriptLimits& limits) {
  const auto bounded = [](std::uint64_t limit) {
    return limit == 0 ? kMaxFrameBytes : std::min(limit, kMaxFrameBytes);
  };
  return kEndBytes + std::max(bounded(limits.output_bytes), bounded(limits.stream_bytes));
}

}  // namespace caisson::isolate
