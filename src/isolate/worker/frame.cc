// SPDX-License-Identifier: Apache-2.0
#include "isolate/worker/frame.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include "isolate/worker/frame_text.h"

namespace caisson::isolate {
namespace {

constexpr std::size_t kFirstRoom = 64u << 10;
constexpr std::size_t kKeptRoom = 1u << 20;

// What a reply may have beyond its value and what was printed.
constexpr std::uint64_t kReplySlack = 2u << 20;
constexpr std::size_t kMaxWalls = 64;

std::uint64_t SaturatingAdd(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t sum = a + b;
  return sum < a ? std::numeric_limits<std::uint64_t>::max() : sum;
}

void PutLimits(FrameWriter& writer, const Limits& limits) {
  writer.U64(limits.memory_bytes);
  writer.U64(limits.heap_bytes);
  writer.U64(limits.fuel);
  writer.U64(static_cast<std::uint64_t>(limits.wall_clock.count()));
  writer.U64(limits.output_bytes);
  writer.U64(limits.stdout_bytes);
}

Limits GetLimits(BodyReader& reader) {
  Limits limits;
  limits.memory_bytes = reader.U64();
  limits.heap_bytes = reader.U64();
  limits.fuel = reader.U64();
  limits.wall_clock = std::chrono::milliseconds(static_cast<std::int64_t>(reader.U64()));
  limits.output_bytes = reader.U64();
  limits.stdout_bytes = reader.U64();
  return limits;
}

void PutOutcome(FrameWriter& writer, const Outcome& outcome) {
  writer.U8(static_cast<std::uint8_t>(outcome.fault));
  writer.U8(static_cast<std::uint8_t>(outcome.memory));
  writer.Text(outcome.error_type, kMaxNameBytes);
  writer.Text(outcome.message, kMaxMessageBytes);
  const std::size_t frames = std::min(outcome.traceback.size(), kMaxFrames);
  writer.U32(static_cast<std::uint32_t>(frames));
  for (std::size_t i = outcome.traceback.size() - frames; i < outcome.traceback.size(); ++i) {
    writer.U32(outcome.traceback[i].line);
    writer.Text(outcome.traceback[i].function, 256);
  }
  writer.Text(outcome.stdout_text, std::numeric_limits<std::uint32_t>::max());
  writer.U64(outcome.stdout_dropped);
  writer.U64(static_cast<std::uint64_t>(outcome.usage.wall.count()));
  writer.U64(outcome.usage.fuel);
  writer.U64(outcome.usage.memory_bytes);
  writer.U64(outcome.usage.output_bytes);
}

Outcome GetOutcome(BodyReader& reader, const Limits& limits) {
  Outcome outcome;
  const std::uint8_t fault = reader.U8();
  const std::uint8_t memory = reader.U8();
  // kKilled is the supervisor's to say.
  reader.Require(fault < static_cast<std::uint8_t>(Fault::kKilled));
  reader.Require(memory <= static_cast<std::uint8_t>(MemoryKind::kHeap));
  if (!reader.ok()) return outcome;
  outcome.fault = static_cast<Fault>(fault);
  outcome.memory = static_cast<MemoryKind>(memory);
  outcome.error_type = ToValidUtf8(reader.Text(kMaxNameBytes));
  outcome.message = ToValidUtf8(reader.Text(kMaxMessageBytes));
  const std::uint32_t frames = reader.U32();
  reader.Require(frames <= kMaxFrames);
  for (std::uint32_t i = 0; i < frames && reader.ok(); ++i) {
    const std::uint32_t line = reader.U32();
    outcome.traceback.push_back({line, ToValidUtf8(reader.Text(256))});
  }
  outcome.stdout_text = ToValidUtf8(reader.Text(limits.stdout_bytes));
  outcome.stdout_dropped = reader.U64();
  outcome.usage.wall = std::chrono::nanoseconds(static_cast<std::int64_t>(reader.U64()));
  outcome.usage.fuel = reader.U64();
  outcome.usage.memory_bytes = reader.U64();
  outcome.usage.output_bytes = reader.U64();
  return outcome;
}

// The length of the UTF-8 sequence at the front of `text`, 0 when there is none.
std::size_t SequenceLength(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool too_long = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool surrogate = lead == 0xed && second >= 0xa0;
  const bool beyond = lead == 0xf4 && second >= 0x90;
  return too_long || surrogate || beyond ? 0 : length;
}

}  // namespace

std::string ToValidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = SequenceLength(text);
    valid.append(length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, length));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return valid;
}

std::string EncodeSource(std::uint32_t number, std::string_view source) {
  FrameWriter writer(FrameType::kSource);
  writer.U32(number);
  writer.Append(source);
  return writer.Take();
}

std::string EncodeForgetSources() { return FrameWriter(FrameType::kForgetSources).Take(); }

OutgoingFrame EncodeCall(const CallMessage& message) {
  FrameWriter writer(FrameType::kCall);
  writer.U64(message.call);
  writer.U32(message.source);
  PutLimits(writer, message.limits);
  return {writer.Take(message.payload.size()), message.payload};
}

std::string EncodeReady(const ReadyMessage& message) {
  FrameWriter writer(FrameType::kReady);
  writer.U32(kProtocolVersion);
  writer.U32(static_cast<std::uint32_t>(message.walls.size()));
  for (const jail::WallReport& wall : message.walls) {
    writer.Text(wall.name, kMaxNameBytes);
    writer.U8(wall.stands ? 1 : 0);
    writer.Text(wall.reason, kMaxNameBytes);
  }
  writer.Append(message.describe);
  return writer.Take();
}

std::string EncodeFailed(const Status& status) {
  FrameWriter writer(FrameType::kFailed);
  PutStatus(writer, status);
  return writer.Take();
}

OutgoingFrame EncodeReply(std::uint64_t call, const Result<EncodedOutcome>& result) {
  if (!result) {
    FrameWriter writer(FrameType::kStatus);
    writer.U64(call);
    PutStatus(writer, result.error());
    return {writer.Take(), {}};
  }
  FrameWriter writer(FrameType::kOutcome);
  writer.U64(call);
  PutOutcome(writer, result->outcome);
  return {writer.Take(result->value_text.size()), result->value_text};
}

std::uint64_t MaxReplyBytes(const Limits& limits) {
  const std::uint64_t texts = SaturatingAdd(limits.output_bytes, limits.stdout_bytes);
  return std::min(SaturatingAdd(texts, kReplySlack), 2 * kMaxFrameBytes);
}

std::optional<SourceMessage> DecodeSource(std::string_view body) {
  BodyReader reader(body);
  SourceMessage message;
  message.number = reader.U32();
  message.text = reader.Rest();
  if (!reader.ok()) return std::nullopt;
  return message;
}

std::optional<CallMessage> DecodeCall(std::string_view body) {
  BodyReader reader(body);
  CallMessage message;
  message.call = reader.U64();
  message.source = reader.U32();
  message.limits = GetLimits(reader);
  message.payload = reader.Rest();
  if (!reader.ok()) return std::nullopt;
  return message;
}

std::optional<ReadyMessage> DecodeReady(std::string_view body) {
  BodyReader reader(body);
  reader.Require(reader.U32() == kProtocolVersion);
  const std::uint32_t walls = reader.U32();
  reader.Require(walls <= kMaxWalls);
  ReadyMessage message;
  for (std::uint32_t i = 0; i < walls && reader.ok(); ++i) {
    jail::WallReport& wall = message.walls.emplace_back();
    wall.name = ToValidUtf8(reader.Text(kMaxNameBytes));
    wall.stands = reader.U8() == 1;
    wall.reason = ToValidUtf8(reader.Text(kMaxNameBytes));
  }
  message.describe = reader.Rest();
  if (!reader.ok()) return std::nullopt;
  return message;
}

std::optional<Status> DecodeFailed(std::string_view body) {
  BodyReader reader(body);
  Status status = GetStatus(reader);
  if (!reader.AtEnd()) return std::nullopt;
  return status;
}

std::optional<ReplyMessage> DecodeReply(FrameType type, std::string_view body,
                                        const Limits& limits) {
  BodyReader reader(body);
  ReplyMessage reply;
  reply.call = reader.U64();
  if (type == FrameType::kStatus) {
    reply.result = Fail(GetStatus(reader));
    if (!reader.AtEnd()) return std::nullopt;
    return reply;
  }
  if (type != FrameType::kOutcome) return std::nullopt;
  EncodedOutcome encoded;
  encoded.outcome = GetOutcome(reader, limits);
  const std::string_view value = reader.Rest();
  // Only a call that gave a value has one.
  reader.Require(encoded.outcome.ok() || value.empty());
  reader.Require(value.size() <= limits.output_bytes);
  if (!reader.ok()) return std::nullopt;
  encoded.value_text = value;
  reply.result = std::move(encoded);
  return reply;
}

FrameReader::Room FrameReader::Prepare() {
  if (begin_ == end_) {
    begin_ = end_ = 0;
    if (buffer_.size() > kKeptRoom) {
      buffer_.resize(kFirstRoom);
      buffer_.shrink_to_fit();
    }
  }
  const std::size_t held = end_ - begin_;
  if (begin_ != 0 && (end_ == buffer_.size() || begin_ > buffer_.size() / 2)) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, held);
    begin_ = 0;
    end_ = held;
  }
  if (buffer_.size() - end_ < kFirstRoom / 2) {
    // Double what is there, but no further than the frame at hand reaches.
    const std::uint64_t useful = std::max<std::uint64_t>(wanted_, held + kFirstRoom);
    buffer_.resize(std::max<std::size_t>(
        {kFirstRoom, end_ + kFirstRoom / 2,
         static_cast<std::size_t>(std::min<std::uint64_t>(useful, 2 * held))}));
  }
  return {buffer_.data() + end_, buffer_.size() - end_};
}

void FrameReader::Commit(std::size_t count) { end_ += count; }

FrameReader::State FrameReader::Next(std::uint64_t max_body, Frame& frame) {
  const std::string_view held(buffer_.data() + begin_, end_ - begin_);
  wanted_ = 0;
  if (held.size() < kFrameHeadBytes) return State::kNeedMore;
  BodyReader reader(held.substr(0, kFrameHeadBytes));
  const std::uint32_t magic = reader.U32();
  frame.type = static_cast<FrameType>(reader.U32());
  const std::uint64_t length = reader.U64();
  if (magic != kFrameMagic || length > max_body) return State::kViolation;
  if (held.size() - kFrameHeadBytes < length) {
    wanted_ = kFrameHeadBytes + length;
    return State::kNeedMore;
  }
  frame.body = held.substr(kFrameHeadBytes, static_cast<std::size_t>(length));
  begin_ += kFrameHeadBytes + static_cast<std::size_t>(length);
  return State::kFrame;
}

}  // namespace caisson::isolate
