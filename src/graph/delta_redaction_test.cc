// SPDX-License-Identifier: Apache-2.0
#include "graph/delta_redaction.h"

#include <gtest/gtest.h>

#include "graph/test_support.h"
#include "json/reader.h"

namespace caisson::graph {
namespace {

struct Shown {
  explicit Shown(const std::string& secret) {
    vault.Add("k", secret);
    EXPECT_TRUE(keeper.Resolve({"k", {"secret"}}).has_value());
  }
  void Take(const std::string& json) { deltas.Take(nodes::DeltaKind::kMessage, *json::Read(json)); }
  std::vector<std::string> lines;
  StaticCredentials vault;
  SecretKeeper keeper{&vault};
  DeltaRedaction deltas{
      keeper, [this](nodes::DeltaKind, const json::Value& data) { lines.push_back(Text(data)); }};
};

using Lines = std::vector<std::string>;

TEST(DeltaRedaction, finds_a_secret_that_comes_in_pieces) {
  Shown shown("sk-secret");
  for (const char* piece : {"key: s", "k-se", "cret", " or sk", "y, sk-se"}) {
    shown.Take(R"({"content":")" + std::string(piece) + "\"}");
  }
  EXPECT_EQ(shown.lines, (Lines{R"({"content":"key: "})", R"({"content":"[[k]]"})",
                                R"({"content":" or "})", R"({"content":"sky, "})"}));
  shown.deltas.Finish();
  EXPECT_EQ(shown.lines.back(), R"({"content":"sk-se"})");
}

TEST(DeltaRedaction, keeps_the_texts_of_calls_apart) {
  Shown shown("ab\"c");
  shown.Take(R"({"tool_call":{"index":0,"name":"f","arguments":"[\"ab"}})");
  shown.Take(R"({"tool_call":{"index":1,"name":"g","arguments":"\"c"}})");
  shown.Take(R"({"tool_call":{"index":0,"arguments":"\\\""}})");
  shown.Take(R"({"tool_call":{"index":0,"arguments":"c\"]"}})");
  EXPECT_EQ(shown.lines, (Lines{R"({"tool_call":{"index":0,"name":"f","arguments":"[\""}})",
                                R"({"tool_call":{"index":1,"name":"g","arguments":"\"c"}})",
                                R"({"tool_call":{"index":0,"arguments":"[[k]]\"]"}})"}));
}

TEST(DeltaRedaction, gives_what_it_held_before_a_tool_begins) {
  Shown shown("sk-secret");
  shown.Take(R"({"tool_call":{"index":2,"arguments":"sk"}})");
  shown.deltas.Take(nodes::DeltaKind::kToolProgress, json::Object{{"tool", "sk-secret"}});
  EXPECT_EQ(shown.lines,
            (Lines{R"({"tool_call":{"index":2,"arguments":"sk"}})", R"({"tool":"[[k]]"})"}));
}

}  // namespace
}  // namespace caisson::graph
