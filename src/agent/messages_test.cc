// SPDX-License-Identifier: Apache-2.0
// Frames and messages as bytes.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "agent/frames.h"
#include "agent/messages.h"

namespace caisson::agent {
namespace {

using State = FrameReader::State;

std::string Bytes(FrameType type, std::string_view payload) {
  return std::string(MakeFrameHeader(type, payload.size()).bytes, kFrameHeaderBytes) +
         std::string(payload);
}

void Feed(FrameReader& reader, std::string_view bytes) {
  bytes.copy(reader.Room(bytes.size()).data(), bytes.size());
  reader.Filled(bytes.size());
}

TEST(Frames, have_a_little_endian_length_and_a_type) {
  EXPECT_EQ(Bytes(FrameType::kStdout, "abc"), std::string("\x03\0\0\0\x43"
                                                          "abc",
                                                          8));
}

TEST(Frames, come_out_as_they_went_in_however_they_are_cut) {
  const std::string large(kMaxDataBytes, 'x');
  const std::string all = Bytes(FrameType::kPing, "") + Bytes(FrameType::kData, large) +
                          Bytes(FrameType::kExec, "request") + Bytes(FrameType::kStdin, "in");
  for (const std::size_t piece :
       {std::size_t{1}, std::size_t{3}, std::size_t{70'000}, all.size()}) {
    FrameReader reader;
    std::string seen;
    for (std::size_t at = 0; at < all.size(); at += piece) {
      Feed(reader, std::string_view(all).substr(at, piece));
      for (Frame frame; reader.Next(frame) == State::kFrame;) {
        seen += Bytes(frame.type, frame.payload);
      }
    }
    EXPECT_TRUE(seen == all) << piece;
    EXPECT_TRUE(reader.empty());
  }
}

TEST(Frames, are_broken_for_good_by_an_unknown_type_or_a_payload_beyond_its_bound) {
  for (const std::string_view bytes :
       {std::string_view("\0\0\0\0\0", 5), std::string_view("\0\0\0\0\xff", 5),
        std::string_view("\0\0\0\0\x1f", 5), std::string_view("\x01\0\x04\0\x43", 5),
        std::string_view("\x01\0\x40\0\x03", 5), std::string_view("\xff\xff\xff\xff\x03", 5)}) {
    FrameReader reader;
    Feed(reader, bytes);
    Frame frame;
    EXPECT_EQ(reader.Next(frame), State::kBroken);
    EXPECT_EQ(reader.Next(frame), State::kBroken);
  }
}

TEST(Frames, hand_out_what_comes_after_the_last_one) {
  FrameReader reader;
  Feed(reader, Bytes(FrameType::kOk, "") + "raw bytes");
  Frame frame;
  ASSERT_EQ(reader.Next(frame), State::kFrame);
  EXPECT_EQ(reader.TakeRest(), "raw bytes");
  EXPECT_TRUE(reader.empty());
}

TEST(Frames, give_away_a_header_that_stands_alone) {
  const auto take = [](const std::string& bytes) {
    FrameReader reader;
    Feed(reader, bytes);
    return reader.TakeHeader(FrameType::kData);
  };
  const std::string data = Bytes(FrameType::kData, "12345");
  EXPECT_EQ(take(data.substr(0, kFrameHeaderBytes)), 5U);
  EXPECT_EQ(take(data.substr(0, kFrameHeaderBytes - 1)), std::nullopt);
  EXPECT_EQ(take(data.substr(0, kFrameHeaderBytes + 1)), std::nullopt);
  EXPECT_EQ(take(data), std::nullopt);
  EXPECT_EQ(take(Bytes(FrameType::kData, "")), std::nullopt);
  EXPECT_EQ(take(Bytes(FrameType::kStdin, "1").substr(0, kFrameHeaderBytes)), std::nullopt);
  EXPECT_EQ(take(std::string("\xff\xff\xff\xff\x30", 5)), std::nullopt);  // beyond its bound
}

TEST(Messages, come_back_as_they_were) {
  const ExecRequest exec{.command = {.argv = {"a", "", "b c"},
                                     .env = {{"A", "1"}, {"B", ""}},
                                     .cwd = "/x",
                                     .pty = Pty{.rows = 1, .columns = 65535}},
                         .stdin_open = true,
                         .timeout = std::chrono::milliseconds(1234567890123)};
  EXPECT_EQ(Decode<ExecRequest>(Encode(exec)), exec);
  const ProcessView view{.process_id = "p",
                         .is_pty = true,
                         .pid = -5,
                         .state = ProcessState::kFailed,
                         .leader_exited = true,
                         .created_at_ms = -1,
                         .finished_at_ms = 7,
                         .exit_code = -128,
                         .argv = {"x"},
                         .foreground = Foreground{.pid = 3, .argv = {"y"}},
                         .output = {.oldest_seq = 1, .newest_seq = ~0ULL, .bytes = 3}};
  EXPECT_EQ(Decode<ProcessView>(Encode(view)), view);
  const ProcessEvent event{.type = EventType::kError,
                           .seq = 9,
                           .stream = OutputStream::kPty,
                           .data = std::string("\0\xff", 2),
                           .oldest_available_seq = 4};
  EXPECT_EQ(Decode<ProcessEvent>(Encode(event)), event);
}

TEST(Messages, have_the_bytes_that_the_protocol_says) {
  EXPECT_EQ(Encode(DialRequest{.port = 0x1234, .to = DialTo::kPublic}),
            std::string("\x34\x12\x01", 3));
  EXPECT_EQ(Encode(ConnectRequest{.process_id = "ab", .after = 2}),
            std::string("\x02\0\0\0ab\x02\0\0\0\0\0\0\0", 14));
  EXPECT_EQ(Encode(PutRequest{.path = "/", .mode = 0644}),
            std::string("\x01\0\0\0/\x01\xa4\x01\0\0", 10));
}

TEST(Messages, are_refused_when_bytes_are_missing_left_over_or_wrong) {
  const std::string whole = Encode(PutRequest{.path = "/file", .mode = 0644});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(Decode<PutRequest>(whole.substr(0, size)));
  }
  EXPECT_FALSE(Decode<PutRequest>(whole + "x"));
  EXPECT_FALSE(Decode<DialRequest>(std::string("\x34\x12\x02", 3)));  // no such enumerator
  EXPECT_FALSE(Decode<StatRequest>(std::string("\0\0\0\0\x02", 5)));  // no bool
  EXPECT_FALSE(Decode<TerminateRequest>(std::string("\0\0\0\0", 4) + std::string(8, '\xff')));
}

TEST(Messages, cannot_make_the_reader_allocate_what_they_do_not_hold) {
  EXPECT_FALSE(Decode<PathRequest>(std::string("\xff\xff\xff\xff", 4)));
  EXPECT_FALSE(Decode<ExecRequest>(std::string("\xff\xff\xff\x7f", 4) + std::string(1000, '\0')));
  // As many items as there are bytes, of four bytes each.
  EXPECT_FALSE(Decode<ExecRequest>(std::string("\x00\x04\0\0", 4) + std::string(1024, '\0')));
}

}  // namespace
}  // namespace caisson::agent
