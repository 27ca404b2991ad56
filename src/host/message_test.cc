// SPDX-License-Identifier: Apache-2.0
#include "host/message.h"

#include <gtest/gtest.h>

#include <limits>

#include "errors/host.h"
#include "host/frame.h"
#include "json/reader.h"

namespace caisson::host {
namespace {

template <typename T>
T Decoded(std::string_view body) {
  auto message = DecodeMessage(body);
  if (!message) {
    ADD_FAILURE() << message.error().message;
    return T{};
  }
  EXPECT_TRUE(std::holds_alternative<T>(*message));
  return std::get<T>(*std::move(message));
}

std::string Refusal(std::string_view body, ErrorCode code = errors::kHostProtocol) {
  const auto message = DecodeMessage(body);
  if (message) return "accepted";
  EXPECT_EQ(message.error().code.name, code.name);
  return message.error().message;
}

TEST(FrameReader, cuts_frames_wherever_the_bytes_are_cut) {
  const std::string bytes = MakeFrame("one") + MakeFrame("") + MakeFrame("three");
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    FrameReader reader(100);
    std::string seen;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.Append(std::string_view(bytes).substr(at, piece));
      std::string_view body;
      while (reader.Next(body) == FrameReader::State::kFrame) seen.append(body).append("|");
    }
    EXPECT_EQ(seen, "one||three|") << piece;
  }
}

TEST(FrameReader, refuses_a_frame_as_soon_as_its_head_is_too_large) {
  FrameReader reader(10);
  std::string_view body;
  reader.Append(MakeFrame("0123456789"));
  EXPECT_EQ(reader.Next(body), FrameReader::State::kFrame);
  reader.Append(std::string_view(MakeFrame("0123456789a")).substr(0, kHeadBytes));
  EXPECT_EQ(reader.Next(body), FrameReader::State::kTooLarge);
  EXPECT_EQ(reader.Next(body), FrameReader::State::kTooLarge);
}

TEST(DecodeMessage, reads_a_hello) {
  const auto hello = Decoded<Hello>(
      R"({"type":"hello","protocol":1,"package":"orcheo 1","types":[{"name":"A","category":"c",
          "restricted":true,"fields":[{"name":"f","required":true},{"name":"g"}]}]})");
  ASSERT_EQ(hello.types.size(), 1u);
  EXPECT_EQ(hello.package, "orcheo 1");
  EXPECT_EQ(hello.types[0].name, "A");
  EXPECT_TRUE(hello.types[0].restricted);
  ASSERT_EQ(hello.types[0].fields.size(), 2u);
  EXPECT_TRUE(hello.types[0].fields[0].required);
  EXPECT_FALSE(hello.types[0].fields[1].required);
}

TEST(DecodeMessage, reads_answers_and_lines) {
  const auto result = Decoded<ResultMessage>(R"({"type":"result","id":7,"value":{"a":[1]}})");
  EXPECT_EQ(result.id, 7u);
  EXPECT_EQ(result.value, *json::Read(R"({"a":[1]})"));
  const auto error = Decoded<ErrorMessage>(
      R"({"type":"error","id":8,"kind":"config","error_type":"ValueError","message":"no"})");
  EXPECT_EQ(error.kind, ErrorMessage::Kind::kConfig);
  EXPECT_EQ(error.error_type, "ValueError");
  const auto log = Decoded<LogMessage>(R"({"type":"log","id":3,"level":"error","text":"x"})");
  EXPECT_EQ(log.id, 3u);
  EXPECT_EQ(log.level, nodes::LogLevel::kError);
  EXPECT_FALSE(Decoded<LogMessage>(R"({"type":"log","level":"info","text":"x"})").id);
  Decoded<PongMessage>(R"({"type":"pong"})");
}

TEST(DecodeMessage, tells_another_version_from_a_broken_message) {
  EXPECT_NE(Refusal(R"({"type":"hello","protocol":2})", errors::kHostVersion).find("version 2"),
            std::string::npos);
  EXPECT_NE(Refusal(R"({"type":"hello","protocol":"1"})").find("$.protocol"), std::string::npos);
}

TEST(DecodeMessage, refuses_what_is_no_message) {
  for (
      const char* body :
      {"",
       "[]",
       "null",
       "{",
       "{}",
       R"({"type":5})",
       R"({"type":"run"})",
       R"({"type":"result"})",
       R"({"type":"result","id":0,"value":1})",
       R"({"type":"result","id":-1,"value":1})",
       R"({"type":"result","id":1.5,"value":1})",
       R"({"type":"result","id":"1","value":1})",
       R"({"type":"result","id":9007199254740993,"value":1})",
       R"({"type":"result","id":1})",
       R"({"type":"result","id":1,"id":2,"value":1})",
       R"({"type":"error","id":1,"kind":"odd","error_type":"","message":""})",
       R"({"type":"error","id":1,"kind":"raised","error_type":"","message":5})",
       R"({"type":"log","level":"loud","text":""})",
       R"({"type":"log","id":null,"level":"info","text":""})",
       R"({"type":"hello","protocol":1,"package":"x","types":{}})",
       R"({"type":"hello","protocol":1,"package":"x","types":[{"name":"","category":"","fields":[]}]})",
       R"({"type":"hello","protocol":1,"package":"x","types":[5]})"}) {
    EXPECT_NE(Refusal(body).find("no message"), std::string::npos) << body;
  }
}

TEST(DecodeMessage, bounds_depth_counts_and_texts) {
  const std::string deep = std::string(800, '[') + std::string(800, ']');
  Refusal(R"({"type":"result","id":1,"value":)" + deep + "}");
  std::string types;
  for (std::size_t i = 0; i <= kMaxTypes; ++i) types += types.empty() ? "0" : ",0";
  Refusal(R"({"type":"hello","protocol":1,"package":"x","types":[)" + types + "]}");
  Refusal(R"({"type":"hello","protocol":1,"package":")" + std::string(300, 'x') +
          R"(","types":[]})");
  const auto cut = Decoded<LogMessage>(R"({"type":"log","level":"info","text":")" +
                                       std::string(kMaxSaidBytes - 1, 'x') + "ää\"}");
  EXPECT_EQ(cut.text, std::string(kMaxSaidBytes - 1, 'x') + "...");
}

TEST(EncodeRun, names_the_place_of_what_is_no_json) {
  Call call;
  call.config = json::Object();
  call.run_config = json::Object();
  call.state = json::Object{{"inputs", std::numeric_limits<double>::infinity()}};
  const auto body = EncodeRun(1, call);
  ASSERT_FALSE(body);
  EXPECT_EQ(body.error().code.name, errors::kHostNotJson.name);
  EXPECT_NE(body.error().message.find("$.state.inputs"), std::string::npos) << body.error().message;
}

}  // namespace
}  // namespace caisson::host
