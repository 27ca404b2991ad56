// SPDX-License-Identifier: Apache-2.0
#include "isolate/worker/frame.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>

#include "errors/internal.h"
#include "errors/isolate.h"

namespace caisson::isolate {
namespace {

// The one frame in `bytes`.
FrameReader::State ReadOne(FrameReader& reader, std::string_view bytes, std::uint64_t max_body,
                           FrameReader::Frame& frame) {
  while (!bytes.empty()) {
    const FrameReader::Room room = reader.Prepare();
    const std::size_t count = std::min(room.size, bytes.size());
    std::memcpy(room.data, bytes.data(), count);
    reader.Commit(count);
    bytes.remove_prefix(count);
  }
  return reader.Next(max_body, frame);
}

std::string BodyOf(const std::string& bytes) { return bytes.substr(kFrameHeadBytes); }

EncodedOutcome FullOutcome() {
  EncodedOutcome full;
  full.outcome.fault = Fault::kMemory;
  full.outcome.memory = MemoryKind::kHeap;
  full.outcome.error_type = "MemoryError";
  full.outcome.message = "too much";
  full.outcome.traceback = {{7, "run"}};
  full.outcome.stdout_text = "so far";
  full.outcome.stdout_dropped = 3;
  full.outcome.usage = {
      .wall = std::chrono::nanoseconds(1), .fuel = 2, .memory_bytes = 3, .output_bytes = 4};
  return full;
}

std::string ReplyBody(const Result<EncodedOutcome>& result) {
  const OutgoingFrame frame = EncodeReply(9, result);
  return BodyOf(frame.head) + std::string(frame.rest);
}

TEST(Frame, CarriesACallAsItIs) {
  const Limits limits{.memory_bytes = 1,
                      .heap_bytes = 2,
                      .fuel = 3,
                      .wall_clock = std::chrono::milliseconds(4),
                      .output_bytes = 5,
                      .stdout_bytes = 6};
  const OutgoingFrame frame =
      EncodeCall({.call = 77, .source = 5, .limits = limits, .payload = "{\"a\":1}"});
  FrameReader reader;
  FrameReader::Frame read{};
  ASSERT_EQ(ReadOne(reader, frame.head + std::string(frame.rest), kMaxFrameBytes, read),
            FrameReader::State::kFrame);
  EXPECT_EQ(read.type, FrameType::kCall);
  const auto call = DecodeCall(read.body);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->call, 77u);
  EXPECT_EQ(call->source, 5u);
  EXPECT_EQ(call->limits, limits);
  EXPECT_EQ(call->payload, "{\"a\":1}");
  EXPECT_TRUE(reader.empty());
}

TEST(Frame, CarriesAnOutcomeAsItIs) {
  const auto reply = DecodeReply(FrameType::kOutcome, ReplyBody(FullOutcome()), Limits{});
  ASSERT_TRUE(reply && reply->result);
  EXPECT_EQ(reply->call, 9u);
  const Outcome& outcome = reply->result->outcome;
  EXPECT_EQ(outcome.fault, Fault::kMemory);
  EXPECT_EQ(outcome.memory, MemoryKind::kHeap);
  EXPECT_EQ(outcome.error_type, "MemoryError");
  EXPECT_EQ(outcome.traceback.at(0).line, 7u);
  EXPECT_EQ(outcome.stdout_text, "so far");
  EXPECT_EQ(outcome.usage.output_bytes, 4u);
}

TEST(Frame, KeepsTheStatusAndReplacesACodeThatIsNone) {
  Status status{errors::kIsolateWorkerLost, "message", {1, 2, 3, 4}, "details"};
  auto reply = DecodeReply(FrameType::kStatus, ReplyBody(Fail(status)), Limits{});
  ASSERT_TRUE(reply && !reply->result);
  EXPECT_EQ(reply->result.error().code, errors::kIsolateWorkerLost);
  EXPECT_EQ(reply->result.error().span, status.span);
  EXPECT_EQ(reply->result.error().details, "details");
  status.code = ErrorCode{"made.up"};
  reply = DecodeReply(FrameType::kStatus, ReplyBody(Fail(status)), Limits{});
  ASSERT_TRUE(reply && !reply->result);
  EXPECT_EQ(reply->result.error().code, errors::kInternalFailed);
}

TEST(Frame, RefusesEveryMessageThatIsCutShort) {
  const std::string outcome = ReplyBody(FullOutcome());
  for (std::size_t size = 0; size < outcome.size(); ++size) {
    EXPECT_FALSE(DecodeReply(FrameType::kOutcome, outcome.substr(0, size), Limits{})) << size;
  }
  const std::string status = ReplyBody(Fail(Status{errors::kInternalFailed, "m", {}, "d"}));
  for (std::size_t size = 0; size < status.size(); ++size) {
    EXPECT_FALSE(DecodeReply(FrameType::kStatus, status.substr(0, size), Limits{})) << size;
  }
  EXPECT_FALSE(DecodeReply(FrameType::kStatus, status + "x", Limits{}));
}

TEST(Frame, RefusesWhatAnHonestWorkerCannotSay) {
  Limits limits;
  limits.stdout_bytes = 3;
  EXPECT_FALSE(DecodeReply(FrameType::kOutcome, ReplyBody(FullOutcome()), limits));
  EncodedOutcome valued{.outcome = {}, .value_text = "{\"long\":true}"};
  limits.output_bytes = 4;
  EXPECT_FALSE(DecodeReply(FrameType::kOutcome, ReplyBody(valued), limits));
  EncodedOutcome killed;
  killed.outcome.fault = Fault::kKilled;
  EXPECT_FALSE(DecodeReply(FrameType::kOutcome, ReplyBody(killed), Limits{}));
  EncodedOutcome both = FullOutcome();
  both.value_text = "{}";
  EXPECT_FALSE(DecodeReply(FrameType::kOutcome, ReplyBody(both), Limits{}));
  EXPECT_FALSE(DecodeReply(FrameType::kReady, ReplyBody(valued), Limits{}));
}

TEST(FrameReader, RefusesBadMagicAndBodiesBeyondTheBound) {
  FrameReader::Frame frame{};
  FrameReader garbage;
  EXPECT_EQ(ReadOne(garbage, std::string(16, 'g'), 100, frame), FrameReader::State::kViolation);
  FrameReader large;
  const std::string source = EncodeSource(1, std::string(200, 's'));
  EXPECT_EQ(ReadOne(large, source, 203, frame), FrameReader::State::kViolation);
  FrameReader fitting;
  EXPECT_EQ(ReadOne(fitting, source, 204, frame), FrameReader::State::kFrame);
}

TEST(FrameReader, DoesNotReserveWhatAHeadOnlyPromises) {
  std::string head = EncodeForgetSources();
  head[8 + 3] = 0x3f;  // a body of about 1 GiB
  FrameReader reader;
  FrameReader::Frame frame{};
  ASSERT_EQ(ReadOne(reader, head, kMaxFrameBytes, frame), FrameReader::State::kNeedMore);
  EXPECT_LE(reader.Prepare().size, 1u << 17);
}

TEST(FrameReader, CutsFramesOutOfAnyPieces) {
  std::string stream;
  for (std::uint32_t i = 0; i < 50; ++i)
    stream += EncodeSource(i, std::string(std::size_t{i} * 997, 's'));
  for (const std::size_t piece : {1u, 7u, 4096u, 100'000u}) {
    FrameReader reader;
    FrameReader::Frame frame{};
    std::uint32_t next = 0;
    std::string_view left = stream;
    while (next < 50) {
      if (reader.Next(kMaxFrameBytes, frame) == FrameReader::State::kFrame) {
        const auto message = DecodeSource(frame.body);
        ASSERT_TRUE(message);
        EXPECT_EQ(message->number, next);
        EXPECT_EQ(message->text.size(), next * 997);
        ++next;
        continue;
      }
      const FrameReader::Room room = reader.Prepare();
      const std::size_t count = std::min({piece, room.size, left.size()});
      ASSERT_GT(count, 0u);
      std::memcpy(room.data, left.data(), count);
      reader.Commit(count);
      left.remove_prefix(count);
    }
    EXPECT_TRUE(reader.empty());
  }
}

TEST(ToValidUtf8, KeepsWhatIsValidAndReplacesTheRest) {
  const std::string replacement = "\xef\xbf\xbd";
  for (const char* valid : {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                            "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf"}) {
    EXPECT_EQ(ToValidUtf8(valid), valid);
  }
  EXPECT_EQ(ToValidUtf8("a\xffz"), "a" + replacement + "z");
  EXPECT_EQ(ToValidUtf8("\xc3"), replacement);
  EXPECT_EQ(ToValidUtf8("\xc0\x80"), replacement + replacement);
  EXPECT_EQ(ToValidUtf8("\xed\xa0\x80"), replacement + replacement + replacement);
  EXPECT_EQ(ToValidUtf8("\xf5\x80\x80\x80").substr(0, 3), replacement);
}

}  // namespace
}  // namespace caisson::isolate
