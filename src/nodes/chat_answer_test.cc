// SPDX-License-Identifier: Apache-2.0
#include "nodes/chat_answer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "errors/model.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::nodes {
namespace {

struct Read {
  Result<ChatAnswer> answer;
  std::vector<std::string> deltas;
};

Read Stream(const std::vector<std::string>& events) {
  std::vector<std::string> deltas;
  const OnDelta on_delta = [&](json::Value delta) { deltas.push_back(*json::Write(delta)); };
  ChunkReader reader(on_delta);
  for (const std::string& event : events) {
    if (auto read = reader.Read(event); !read) return {Fail(read.error()), deltas};
  }
  return {reader.Finish(), deltas};
}

std::string CodeOf(const Result<ChatAnswer>& answer) {
  return answer ? "answered" : std::string(answer.error().code.name);
}

std::string Delta(const std::string& delta, const std::string& finish = "null") {
  return R"({"model":"m","choices":[{"index":0,"delta":)" + delta + R"(,"finish_reason":)" +
         finish + "}]}";
}

TEST(ChunkReader, puts_text_and_calls_together) {
  const Read read = Stream(
      {Delta(R"({"role":"assistant","content":""})"), Delta(R"({"content":"He"})"),
       Delta(R"({"content":"llo"})"),
       Delta(R"({"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]})"),
       Delta(R"({"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}]})"),
       Delta(R"({"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]})"),
       Delta(R"({"tool_calls":[{"index":1,"function":{"arguments":"}"}}]})"),
       Delta("{}", R"("tool_calls")"),
       R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}})",
       "[DONE]"});
  ASSERT_TRUE(read.answer.has_value());
  EXPECT_EQ(read.answer->content, "Hello");
  ASSERT_EQ(read.answer->calls.size(), 2u);
  EXPECT_EQ(read.answer->calls[0].name, "f");
  EXPECT_EQ(read.answer->calls[0].arguments, "{}");
  EXPECT_EQ(read.answer->calls[1].id, "b");
  EXPECT_EQ(read.answer->calls[1].arguments, "{}");
  EXPECT_EQ(read.answer->finish_reason, "tool_calls");
  EXPECT_EQ(read.answer->usage->total, 7);
  ASSERT_EQ(read.deltas.size(), 6u);
  EXPECT_EQ(read.deltas[0], R"({"content":"He"})");
  EXPECT_EQ(read.deltas[2], R"({"tool_call":{"index":0,"id":"a","name":"f"}})");
}

TEST(ChunkReader, takes_calls_without_an_index_in_their_order) {
  const Read read =
      Stream({Delta(R"({"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]})"),
              Delta(R"({"tool_calls":[{"function":{"arguments":"}"}}]})"),
              Delta(R"({"tool_calls":[{"function":{"name":"g","arguments":"{}"},"id":"b"}]})"),
              Delta("{}", R"("stop")")});
  ASSERT_TRUE(read.answer.has_value());
  ASSERT_EQ(read.answer->calls.size(), 2u);
  EXPECT_EQ(read.answer->calls[0].arguments, "{}");
  EXPECT_EQ(read.answer->calls[1].name, "g");
}

TEST(ChunkReader, tells_a_stream_that_was_cut_from_one_that_ended) {
  EXPECT_EQ(CodeOf(Stream({Delta(R"({"content":"a"})")}).answer), "model.cut");
  EXPECT_EQ(CodeOf(Stream({}).answer), "model.cut");
  EXPECT_EQ(CodeOf(Stream({Delta(R"({"content":"a"})"), "[DONE]"}).answer), "answered");
  EXPECT_EQ(CodeOf(Stream({Delta(R"({"content":"a"})", R"("stop")")}).answer), "answered");
  EXPECT_EQ(CodeOf(Stream({"[DONE]"}).answer), "model.malformed");
}

TEST(ChunkReader, refuses_what_no_chat_endpoint_sends) {
  for (const std::string& event :
       {std::string("{"), std::string("[1]"), std::string("7"), std::string(R"({"choices":7})"),
        std::string(R"({"choices":[7]})"), Delta("7"), Delta(R"({"content":7})"),
        Delta(R"({"tool_calls":7})"), Delta(R"({"tool_calls":[{"index":-1}]})"),
        Delta(R"({"tool_calls":[{"index":0,"function":7}]})"),
        std::string(R"({"usage":{"prompt_tokens":-1}})"),
        std::string(R"({"usage":{"prompt_tokens":99999999999999}})"),
        R"({"id":")" + std::string(300, 'x') + R"("})"}) {
    EXPECT_EQ(CodeOf(Stream({event, "[DONE]"}).answer), "model.malformed") << event;
  }
  EXPECT_EQ(CodeOf(Stream({Delta(R"({"tool_calls":[{"index":64}]})")}).answer), "model.too_large");
  EXPECT_EQ(CodeOf(Stream({R"({"error":{"message":"overloaded"}})"}).answer), "model.failed");
  // A call that names no tool cannot be answered.
  EXPECT_EQ(CodeOf(Stream({Delta(R"({"tool_calls":[{"index":1,"id":"a","function":{"name":"f"}}]})",
                                 R"("stop")")})
                       .answer),
            "model.malformed");
}

TEST(ChunkReader, bounds_the_text) {
  const std::string half(kMaxAnswerText / 2, 'a');
  EXPECT_EQ(CodeOf(Stream({Delta("{\"content\":\"" + half + "\"}"),
                           Delta("{\"refusal\":\"" + half + "a\"}")})
                       .answer),
            "model.too_large");
}

Result<ChatAnswer> Whole(const std::string& text) { return ReadCompletion(*json::Read(text)); }

TEST(ReadCompletion, takes_text_parts_and_calls) {
  const auto answer = Whole(
      R"({"model":"m","choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"text",
      "text":"b"}],"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},
      "finish_reason":"stop"}]})");
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->content, "ab");
  ASSERT_EQ(answer->calls.size(), 1u);
  EXPECT_EQ(answer->calls[0].id, "call_1");
  EXPECT_FALSE(answer->usage.has_value());
}

TEST(ReadCompletion, refuses_what_no_chat_endpoint_sends) {
  for (const char* text :
       {"[]", "{}", R"({"choices":[]})", R"({"choices":[{}]})", R"({"choices":[{"message":7}]})",
        R"({"choices":[{"message":{"content":7}}]})",
        R"({"choices":[{"message":{"tool_calls":[{}]}}]})",
        R"({"choices":[{"message":{"tool_calls":[{"function":{"name":""}}]}}]})"}) {
    EXPECT_EQ(CodeOf(Whole(text)), "model.malformed") << text;
  }
  EXPECT_EQ(CodeOf(Whole(R"({"error":"no such model"})")), "model.failed");
}

TEST(ErrorWords, knows_the_usual_forms_and_cuts) {
  const auto words = [](const std::string& text) { return ErrorWords(*json::Read(text)); };
  EXPECT_EQ(words(R"({"error":{"message":"no"}})"), "no");
  EXPECT_EQ(words(R"({"error":"no"})"), "no");
  EXPECT_EQ(words(R"({"error":{"code":7}})"), "{'code': 7}");
  EXPECT_EQ(words(R"({"error":null})"), "");
  EXPECT_EQ(words(R"({"x":1})"), "");
  EXPECT_LE(words("{\"error\":\"" + std::string(5000, 'x') + "\"}").size(), 1003u);
}

}  // namespace
}  // namespace caisson::nodes
