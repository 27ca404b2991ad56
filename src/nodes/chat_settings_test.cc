// SPDX-License-Identifier: Apache-2.0
#include "nodes/chat_settings.h"

#include <gtest/gtest.h>

#include <string>

#include "json/reader.h"
#include "json/writer.h"

namespace caisson::nodes {
namespace {

Result<ChatSettings> Settings(const std::string& model, const std::string& kwargs) {
  return ReadChatSettings(model, json::Read(kwargs)->as_object());
}

std::string Refusal(const std::string& model, const std::string& kwargs) {
  const auto settings = Settings(model, kwargs);
  if (settings) return "accepted";
  return std::string(settings.error().code.name) + " " + settings.error().message;
}

TEST(ChatSettings, speaks_to_openai_unless_told_otherwise) {
  const auto settings = Settings("openai:gpt-x", "{}");
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(settings->url, "https://api.openai.com/v1/chat/completions");
  EXPECT_EQ(settings->model, "gpt-x");
  EXPECT_TRUE(settings->api_key.empty());
  EXPECT_EQ(Settings("gpt-x", "{}")->model, "gpt-x");
  EXPECT_EQ(Settings("org/llama:8b", R"({"model_provider":"openai"})")->model, "org/llama:8b");
  EXPECT_EQ(Settings("openai:m", R"({"base_url":" http://h/v1/ "})")->url,
            "http://h/v1/chat/completions");
}

TEST(ChatSettings, refuses_other_providers_and_says_what_to_do) {
  for (const char* model : {"anthropic:claude-x", "claude-x", "some-model", "", "openai:", ":x"}) {
    const std::string refusal = Refusal(model, "{}");
    EXPECT_TRUE(refusal.starts_with("model.provider ")) << model << ": " << refusal;
    EXPECT_NE(refusal.find("'openai:MODEL'"), std::string::npos);
  }
  EXPECT_TRUE(Refusal("gpt-x", R"({"model_provider":"anthropic"})").starts_with("model.provider "));
}

TEST(ChatSettings, puts_members_where_they_belong) {
  const auto settings = Settings(
      "openai:m",
      R"({"api_key":" k ","anthropic_api_key":"other","temperature":0.5,"max_tokens":5,"stop":["x"],
      "model_kwargs":{"user":"me"},"extra_body":{"foo":{"a":1}},"default_headers":{"X-A":"b"},
      "organization":"org","timeout":2.5,"max_retries":0,"streaming":false,"top_p":null})");
  ASSERT_TRUE(settings.has_value()) << settings.error().message;
  EXPECT_EQ(settings->api_key, "k");
  EXPECT_EQ(*json::Write(settings->body),
            R"({"temperature":0.5,"max_completion_tokens":5,"stop":["x"],"user":"me",)"
            R"("foo":{"a":1}})");
  EXPECT_EQ(*settings->headers.Find("x-a"), "b");
  EXPECT_EQ(*settings->headers.Find("openai-organization"), "org");
  EXPECT_EQ(settings->patience.count(), 2500);
  EXPECT_EQ(settings->retries, 0);
  EXPECT_FALSE(settings->stream);
}

TEST(ChatSettings, refuses_what_it_does_not_know_without_showing_it) {
  for (const char* kwargs :
       {R"({"api_key":7})", R"({"api_key":"sk-1\nX: y"})", R"({"base_url":7})",
        R"({"base_url":"http://h/v1?sk-1=2"})", R"({"temperature":"sk-1"})", R"({"max_tokens":0})",
        R"({"timeout":-1})", R"({"timeout":1e9})", R"({"max_retries":11})", R"({"streaming":1})",
        R"({"use_responses_api":true})", R"({"n":2})", R"({"something":"sk-1"})",
        R"({"model_kwargs":{"messages":["sk-1"]}})", R"({"extra_body":{"tools":[]}})",
        R"({"default_headers":{"Host":"sk-1"}})", R"({"default_headers":{"A":"sk-1\r\nB: c"}})",
        R"({"default_headers":["sk-1"]})", R"({"default_query":{"a":"b"}})"}) {
    const std::string refusal = Refusal("openai:m", kwargs);
    EXPECT_TRUE(refusal.starts_with("model.setting model_kwargs.")) << kwargs << ": " << refusal;
    EXPECT_EQ(refusal.find("sk-1"), std::string::npos) << refusal;
  }
}

}  // namespace
}  // namespace caisson::nodes
