// SPDX-License-Identifier: Apache-2.0
#include "workflow/diagnostic.h"

#include <gtest/gtest.h>

#include <string>

#include "errors/body.h"
#include "errors/ir.h"
#include "json/reader.h"

namespace caisson::workflow {
namespace {

Diagnostic At(SourceSpan span, std::string message = "it is wrong") {
  return {
      .code = errors::kBodySyntax, .span = span, .message = std::move(message), .hint = "fix it"};
}

std::string Text(const Diagnostic& diagnostic, std::string_view source) {
  return Render({diagnostic}, "w.py", source, DiagnosticFormat::kText);
}

TEST(Diagnostics, ShowTheLineAndTheRange) {
  EXPECT_EQ(Text(At({2, 4, 2, 7}), "a\nx = abc + 1\n"),
            "w.py:2:5: error: it is wrong [body.syntax]\n"
            "    2 | x = abc + 1\n"
            "      |     ^~~\n"
            "    help: fix it\n");
}

TEST(Diagnostics, CountColumnsInCodePointsAndCarryWideCells) {
  EXPECT_EQ(Text(At({1, 9, 1, 10}), "é = '漢' + 1"),
            "w.py:1:7: error: it is wrong [body.syntax]\n"
            "    1 | é = '漢' + 1\n"
            "      |        ^\n"
            "    help: fix it\n");
}

TEST(Diagnostics, ShowTabsAsBlanks) {
  EXPECT_EQ(Text(At({1, 1, 1, 2}), "\tx"),
            "w.py:1:2: error: it is wrong [body.syntax]\n"
            "    1 |     x\n"
            "      |     ^\n"
            "    help: fix it\n");
}

TEST(Diagnostics, LetNoControlCharacterThrough) {
  const std::string text =
      Text(At({1, 0, 1, 1}, "id '\x1b[31m\nx\u202e'"), "\x1b]0;title\x07 \u202e");
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x07'), std::string::npos);
  EXPECT_EQ(text.find("\u202e"), std::string::npos);
}

TEST(Diagnostics, CutLongLines) {
  const std::string line = std::string(500'000, 'a') + "b" + std::string(1000, 'c');
  const std::string text = Text(At({1, 500'000, 1, 500'001}), line);
  EXPECT_LT(text.size(), 500u);
  EXPECT_NE(text.find("1 | ...aaa"), std::string::npos) << text;
  EXPECT_NE(text.find("ccc...\n"), std::string::npos) << text;
  EXPECT_NE(text.find("| " + std::string(63, ' ') + "^\n"), std::string::npos) << text;
}

TEST(Diagnostics, UnderlineTheFirstLineOfSeveral) {
  EXPECT_NE(Text(At({1, 2, 3, 1}), "a (b,\n c,\n d)\n").find("|   ^~~\n"), std::string::npos);
}

TEST(Diagnostics, SpansBeyondTheSourceDoNoHarm) {
  for (const SourceSpan span : {SourceSpan{9, 9, 9, 9},
                                {1, 99, 1, 999},
                                {1, 3, 1, 1},
                                {2, 0, 1, 0},
                                {1, 0, 9, 9},
                                {4294967295, 4294967295, 4294967295, 4294967295}}) {
    EXPECT_NE(Text(At(span), "abc\n").find("it is wrong"), std::string::npos);
    EXPECT_NE(Text(At(span), "").find("it is wrong"), std::string::npos);
  }
}

TEST(Diagnostics, ColourOnDemandOnly) {
  const auto render = [](bool color) {
    return Render({At({1, 0, 1, 1})}, "w.py", "x", DiagnosticFormat::kText, color);
  };
  EXPECT_EQ(render(false).find('\x1b'), std::string::npos);
  EXPECT_NE(render(true).find("\x1b[1;31merror:\x1b[0m"), std::string::npos);
}

TEST(Diagnostics, SayThePathOfSemanticErrors) {
  Diagnostic diagnostic{.code = errors::kIrUnknownNode,
                        .severity = Severity::kWarning,
                        .message = "m",
                        .path = "IR subgraph 'x'"};
  EXPECT_EQ(Text(diagnostic, ""),
            "w.py: warning: m [ir.unknown_node]\n      at: IR subgraph 'x'\n");
}

TEST(Diagnostics, AsJson) {
  const std::string text =
      Render({At({1, 2, 1, 4}, "lone \xED\xA0\x80")}, "w.py", "éabc", DiagnosticFormat::kJson);
  const auto report = json::Read(text);
  ASSERT_TRUE(report) << text;
  EXPECT_EQ(report->Find("errors")->as_int(), 1);
  EXPECT_EQ(report->Find("warnings")->as_int(), 0);
  const json::Value& first = report->Find("diagnostics")->as_array()[0];
  EXPECT_EQ(first.Find("code")->as_string(), "body.syntax");
  EXPECT_EQ(first.Find("line")->as_int(), 1);
  EXPECT_EQ(first.Find("column")->as_int(), 2);
  EXPECT_EQ(first.Find("end_column")->as_int(), 4);
  EXPECT_TRUE(first.Find("peer_line")->is_null());
}

TEST(Diagnostics, AsSarif) {
  Diagnostic unknown{.code = errors::kIrUnknownNode, .message = "m", .path = "IR"};
  const std::string text = Render({At({1, 0, 1, 1}), unknown, At({2, 0, 2, 1})}, "a b/ü.py", "x\ny",
                                  DiagnosticFormat::kSarif);
  const auto report = json::Read(text);
  ASSERT_TRUE(report) << text;
  EXPECT_EQ(report->Find("version")->as_string(), "2.1.0");
  const json::Value& run = report->Find("runs")->as_array()[0];
  const auto& rules = run.Find("tool")->Find("driver")->Find("rules")->as_array();
  ASSERT_EQ(rules.size(), 2u);
  const auto& results = run.Find("results")->as_array();
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[2].Find("ruleIndex")->as_int(), 0);
  const json::Value& location = results[0].Find("locations")->as_array()[0];
  const json::Value* physical = location.Find("physicalLocation");
  EXPECT_EQ(physical->Find("artifactLocation")->Find("uri")->as_string(), "a%20b/%C3%BC.py");
  EXPECT_EQ(physical->Find("region")->Find("startLine")->as_int(), 1);
  EXPECT_EQ(results[1].Find("locations")->as_array()[0].Find("physicalLocation")->Find("region"),
            nullptr);
}

}  // namespace
}  // namespace caisson::workflow
