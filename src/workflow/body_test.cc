// SPDX-License-Identifier: Apache-2.0
#include "workflow/body.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "errors/body.h"
#include "json/reader.h"
#include "python/parser.h"
#include "workflow/body_check.h"
#include "workflow/body_parse.h"
#include "workflow/capability.h"

namespace caisson::workflow {
namespace {

TEST(Body, HasSeventyEightBuiltins) {
  EXPECT_EQ(AllowedBuiltins().size(), 78u);
  EXPECT_TRUE(std::ranges::is_sorted(AllowedBuiltins()));
  EXPECT_TRUE(std::ranges::is_sorted(RejectedBuiltins()));
  for (std::string_view name : AllowedBuiltins()) {
    EXPECT_FALSE(std::ranges::binary_search(RejectedBuiltins(), name)) << name;
  }
}

TEST(Body, IsPrintedWithItsLines) {
  const auto body = PrepareBody({"n", {}, {}, "# c\nx = (1,\n     2)\n\nreturn {'x': x}"});
  ASSERT_TRUE(body);
  EXPECT_EQ(body->source, "def run(self, state, config):\n    x = 1, 2\n    return {'x': x}\n");
  EXPECT_EQ(body->body_lines, (std::vector<std::uint32_t>{0, 2, 5}));
}

TEST(Body, MayBeIndentedAsAWhole) {
  const auto body = PrepareBody({"n", {}, {}, "\n  # c\n    x = '''a\n  b'''\n    return x"});
  ASSERT_TRUE(body) << body.error()[0].message;
  EXPECT_EQ(body->source, "def run(self, state, config):\n    x = 'a\\n  b'\n    return x\n");
  EXPECT_EQ(body->body_lines, (std::vector<std::uint32_t>{0, 3, 5}));
}

TEST(Body, ErrorsCountInItsOwnLines) {
  const auto plain = PrepareBody({"n", {}, {}, "x = 1\nreturn open"});
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error()[0].span, (SourceSpan{2, 7, 2, 11}));
  const auto indented = PrepareBody({"n", {}, {}, "    x = 1\n    return open"});
  ASSERT_FALSE(indented);
  EXPECT_EQ(indented.error()[0].span, (SourceSpan{2, 11, 2, 15}));
}

TEST(Body, IsChecked) {
  for (const char* body :
       {"", "# only a comment", "return (", "import os\nreturn 1", "x = 1", "return self.other",
        "return __import__", "    return 1\nreturn 2", "return 1\n  x = 2"}) {
    EXPECT_FALSE(PrepareBody({"n", {}, {}, body})) << body;
  }
  EXPECT_FALSE(PrepareBody({"n", {}, {}, std::string("return 1\0", 9)}));
}

TEST(Body, DepthEndsInADiagnostic) {
  const std::string unary = "return " + std::string(3000, '-') + "1";
  const auto result = PrepareBody({"n", {}, {}, unary});
  ASSERT_FALSE(result);
  EXPECT_FALSE(result.error()[0].message.empty());
}

TEST(Body, MayNotExceedWhatTheBytecodeCounts) {
  const auto repeated = [](int count) {
    std::string text = "0";
    for (int i = 1; i < count; ++i) text += ",0";
    return text;
  };
  EXPECT_TRUE(PrepareBody({"n", {}, {}, "return max(" + repeated(255) + ")"}));
  EXPECT_FALSE(PrepareBody({"n", {}, {}, "return max(" + repeated(256) + ")"}));
  EXPECT_TRUE(PrepareBody({"n", {}, {}, "return [" + repeated(30'000) + "]"}));
  EXPECT_FALSE(PrepareBody({"n", {}, {}, "return [" + repeated(30'001) + "]"}));
}

// `count` statements inside of `head`, and `tail` behind them.
std::string LongBlock(std::string_view head, std::string_view statement, int count,
                      std::string_view tail = "") {
  std::string text = "d = {}\nx = 1\n" + std::string(head) + "\n";
  for (int i = 0; i < count; ++i) text += "    " + std::string(statement) + "\n";
  return text + std::string(tail) + "return {'x': x}";
}

// The counts are the artifact's own: it compiles the first number of statements, not the second.
TEST(Body, MayNotHaveABlockThatNoJumpCrosses) {
  struct Case {
    std::string_view head;
    std::string_view statement;
    int good;
    int bad;
    std::string_view tail;
  };
  const Case cases[] = {
      {"while x:", "x = 1", 8190, 8200},
      {"while True:", "x = 1", 8190, 8200},
      {"for i in d:", "x = 1", 8188, 8200},
      {"if x:", "x = 1", 8191, 8193},
      {"if x:\n    pass\nelse:", "x = 1", 8191, 8193},
      {"while x:", "d[x] = x", 4095, 4100},
      {"while x:", "x = x + 1", 4095, 4100},
      {"while x:", "x += 1", 4095, 4100},
      {"while x:", "d.append(x)", 2340, 2345},
      {"with x:", "x = 1", 16382, 16390},
      {"try:", "x = 1", 16382, 16390, "except ValueError:\n    pass\n"},
      {"try:\n    pass\nexcept ValueError:", "x = 1", 8190, 8200},
  };
  for (const Case& each : cases) {
    EXPECT_TRUE(
        PrepareBody({"n", {}, {}, LongBlock(each.head, each.statement, each.good, each.tail)}))
        << each.head << " " << each.statement;
    const auto refused =
        PrepareBody({"n", {}, {}, LongBlock(each.head, each.statement, each.bad, each.tail)});
    ASSERT_FALSE(refused) << each.head << " " << each.statement;
    EXPECT_EQ(refused.error()[0].code, errors::kBodyUnsupportedSyntax);
    EXPECT_EQ(refused.error()[0].span.line, 3u);
  }
}

TEST(Body, MayHaveALongBlockOfWhichNoCodeIsMade) {
  for (const std::string_view head :
       {"if 0:", "if x:\n    return {}\nelse:", "while x:\n    break", "def f():"}) {
    EXPECT_TRUE(PrepareBody({"n", {}, {}, LongBlock(head, "x = 1", 9000)})) << head;
  }
  EXPECT_TRUE(PrepareBody({"n", {}, {}, LongBlock("while x:", "'text'", 9000)}));
  EXPECT_TRUE(PrepareBody({"n", {}, {}, LongBlock("while x:", "pass", 9000)}));
}

TEST(Body, NamesOnlyTheInnermostBlockThatIsTooLong) {
  std::string text = "while state:\n    if state:\n";
  for (int i = 0; i < 9000; ++i) text += "        x = 1\n";
  const auto refused = PrepareBody({"n", {}, {}, text + "return {'x': x}"});
  ASSERT_FALSE(refused);
  ASSERT_EQ(refused.error().size(), 1u);
  EXPECT_EQ(refused.error()[0].span, (SourceSpan{2, 4, 2, 6}));
}

TEST(Body, CannotBeLargerThanABody) {
  const std::string huge = "return '" + std::string(3u << 20, 'x') + "'";
  ASSERT_FALSE(PrepareBody({"n", {}, {}, huge}));
}

// Runs the syntax half on the probes of the artifact: what it could not compile is an error, what
// it ran like CPython is none.
TEST(Body, SyntaxErrorsAgreeWithTheProbesOfTheArtifact) {
  std::ifstream file(std::filesystem::path(CAISSON_SOURCE_DIR) / "runtimes" / "micropython" /
                     "capabilities.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto document = json::Read(text);
  ASSERT_TRUE(document);
  // These are gone from the canonical printing of the same AST.
  const std::vector<std::string> printed_away = {"named_unicode_escape", "with_parenthesised"};
  int refused = 0;
  int same = 0;
  for (const json::Value& probe : document->Find("probes")->as_array()) {
    const std::string& id = probe.Find("id")->as_string();
    const std::string& outcome = probe.Find("outcome")->as_string();
    const auto parsed = ParseBody(probe.Find("snippet")->as_string());
    if (!parsed || std::ranges::find(printed_away, id) != printed_away.end()) continue;
    python::Arguments arguments{};
    python::FunctionDef run{};
    run.kind = python::StmtKind::kFunctionDef;
    run.args = &arguments;
    run.body = parsed->statements;
    std::vector<python::NodeRef> nodes;
    python::WalkBreadthFirst(&run, [&](python::NodeRef node) { nodes.push_back(node); });
    std::vector<Diagnostic> found;
    internal::CheckGuestSyntax(run, nodes, "n", found);
    if (outcome == "loud-compile") {
      EXPECT_FALSE(found.empty()) << id;
      ++refused;
    } else {
      EXPECT_TRUE(found.empty()) << id << ": " << (found.empty() ? "" : found[0].message);
      same += outcome == "same";
    }
  }
  EXPECT_GE(refused, 11);
  EXPECT_GE(same, 200);
}

}  // namespace
}  // namespace caisson::workflow
