// SPDX-License-Identifier: Apache-2.0
#include "nodes/chat_messages.h"

#include <gtest/gtest.h>

#include <string>

#include "json/reader.h"
#include "json/writer.h"

namespace caisson::nodes {
namespace {

json::Value Parse(const std::string& text) {
  auto value = json::Read(text);
  EXPECT_TRUE(value.has_value()) << text;
  return value.value_or(json::Value());
}

// "human:a ai:b" of what is found.
std::string Found(const std::string& messages, const std::string& inputs, HistoryRules rules = {}) {
  State state;
  state.Set(StateField::kMessages, Parse(messages));
  state.Set(StateField::kInputs, Parse(inputs));
  std::string text;
  for (const json::Value& message : FindConversation(state, rules)) {
    text += (text.empty() ? "" : " ") + message.Find("type")->as_string() + ":" +
            message.Find("content")->as_string();
  }
  return text;
}

TEST(FindConversation, takes_the_inputs_only_when_the_state_has_no_messages) {
  const std::string inputs =
      R"({"history":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},
      {"role":"system","content":"no"},{"role":"user","content":" "},7],"message":" c "})";
  EXPECT_EQ(Found("[]", inputs), "human:a ai:b human:c");
  EXPECT_EQ(Found(R"([{"type":"human","content":"x"}])", inputs), "human:x");
  EXPECT_EQ(Found("[]", "{}"), "");
  EXPECT_EQ(Found("[]", "7"), "");
}

TEST(FindConversation, finds_the_turn_in_each_of_its_places) {
  EXPECT_EQ(Found("[]", R"({"message":"","query":{"text":"q"}})"), "human:q");
  EXPECT_EQ(Found("[]", R"({"user_message":{"content":"u"}})"), "human:u");
  EXPECT_EQ(Found("[]", R"({"prompt":"p"})"), "human:p");
  EXPECT_EQ(Found("[]", R"({"listener":{"message":{"text":"l"}}})"), "human:l");
  EXPECT_EQ(Found("[]", R"({"history":[{"role":"user","content":" hi "}],"message":"hi"})"),
            "human: hi ");
}

TEST(FindConversation, begins_at_the_latest_reset) {
  const std::string messages =
      R"([{"type":"human","content":"a"},{"type":"human","content":" /new "},
      {"type":"human","content":"b"}])";
  EXPECT_EQ(Found(messages, "{}", {30, "/new"}), "human: /new  human:b");
  EXPECT_EQ(Found(messages, "{}", {30, "/other"}), "human:a human: /new  human:b");
}

TEST(FindConversation, cuts_between_turns_and_not_within_them) {
  const std::string messages =
      R"([{"type":"human","content":"a"},{"type":"ai","content":"","tool_calls":[{"id":"1"}]},
      {"type":"tool","content":"t"},{"type":"ai","content":"b"},{"type":"human","content":"c"},
      {"type":"ai","content":"","tool_calls":[{"id":"2"}]}])";
  EXPECT_EQ(Found(messages, "{}", {4, ""}), "ai:b human:c");
  EXPECT_EQ(Found(messages, "{}", {5, ""}), "ai: tool:t ai:b human:c");
  EXPECT_EQ(Found(messages, "{}", {1, ""}), "");
  // As a slice of Python's.
  EXPECT_EQ(Found(messages, "{}", {0, ""}), "human:a ai: tool:t ai:b human:c");
  EXPECT_EQ(Found(messages, "{}", {-3, ""}), "ai:b human:c");
  EXPECT_EQ(Found(messages, "{}", {-99, ""}), "");
}

TEST(ToWire, has_a_form_for_every_kind_of_message) {
  const json::Array messages = Parse(R"([
      {"type":"human","content":"h","name":"Ann"},
      {"type":"ai","content":"","tool_calls":[{"id":"1","name":"f","args":{"a":"ö"}}],
       "invalid_tool_calls":[{"id":"2","name":"g","args":"{"}]},
      {"type":"tool","content":"t","tool_call_id":"1","name":"f"},
      {"type":"system","content":"d","additional_kwargs":{"__openai_role__":"developer"}},
      {"type":"ai","content":"x","tool_calls":[]}])")
                                   .as_array();
  const std::string wire = *json::Write(ToWire("sys", messages));
  EXPECT_EQ(
      wire,
      R"([{"content":"sys","role":"system"},{"content":"h","role":"user","name":"Ann"},)"
      R"({"content":null,"role":"assistant","tool_calls":[{"type":"function","id":"1",)"
      R"("function":{"name":"f","arguments":"{\"a\": \"ö\"}"}},{"type":"function","id":"2",)"
      R"("function":{"name":"g","arguments":"{"}}]},)"
      R"({"content":"t","role":"tool","tool_call_id":"1"},{"content":"d","role":"developer"},)"
      R"({"content":"x","role":"assistant"}])");
}

TEST(AiMessage, keeps_calls_that_cannot_be_read_apart) {
  ChatAnswer answer;
  answer.calls = {{"1", "f", "{\"a\":1}"}, {"2", "g", "{"}, {"3", "h", "[1]"}, {"4", "i", "  "}};
  answer.usage = ChatUsage{3, 4, 7};
  const json::Value message = AiMessage(answer);
  EXPECT_EQ(message.Find("tool_calls")->as_array().size(), 2u);
  EXPECT_EQ(message.Find("invalid_tool_calls")->as_array().size(), 2u);
  EXPECT_EQ(*message.Find("tool_calls")->as_array()[1].Find("args"), json::Value(json::Object()));
  EXPECT_EQ(*message.Find("usage_metadata")->Find("total_tokens"), json::Value(7));
}

}  // namespace
}  // namespace caisson::nodes
