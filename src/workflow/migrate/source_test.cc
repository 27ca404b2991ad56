// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/source.h"

#include <gtest/gtest.h>

#include "python/parser.h"

namespace caisson::workflow::migrate {
namespace {

std::string Rendered(std::string_view text, const Edits& edits) {
  return Join(Source(text).Render({0, text.size()}, edits));
}

TEST(Edits, KeepOuterOnesAroundInnerOnes) {
  Edits edits;
  edits.Wrap({0, 3}, "[", "]");
  edits.Wrap({0, 3}, "(", ")");
  edits.Replace({0, 1}, "X");
  EXPECT_EQ(Rendered("abc", edits), "[(Xbc)]\n");
}

TEST(Edits, CloseOneStretchBeforeTheNextOpens) {
  Edits edits;
  edits.Wrap({1, 2}, "<", ">");
  edits.Wrap({0, 1}, "(", ")");
  EXPECT_EQ(Rendered("ab", edits), "(a)<b>\n");
}

TEST(Edits, AreDroppedInsideOfWhatIsReplaced) {
  Edits edits;
  edits.Replace({1, 4}, "-");
  edits.Replace({2, 3}, "lost");
  EXPECT_EQ(Rendered("abcde", edits), "a-e\n");
}

TEST(Source, KnowsWhereLinesComeFrom) {
  const std::string_view text = "one\ntwo\nthree\n";
  Edits edits;
  edits.Erase({4, 8});
  edits.Open(0, "zero\n");
  const Lines lines = Source(text).Render({0, text.size()}, edits);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].text, "zero");
  EXPECT_EQ(lines[1].text, "one");
  EXPECT_EQ(lines[2].text, "three");
  EXPECT_EQ(lines[2].origin, 3u);
}

TEST(Source, LeavesTheInsideOfStringsWhereItIs) {
  const std::string text = "def f():\n    x = '''a\n  b'''\n    return x\n";
  const auto tree = python::Parse(text, {.is_text = true});
  ASSERT_TRUE(tree);
  Source source(text);
  source.MarkStrings(tree->module());
  const Lines lines = source.Reindent({source.LineStart(2), text.size()}, {}, 4, 8);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].text, "        x = '''a");
  EXPECT_EQ(lines[1].text, "  b'''");
  EXPECT_EQ(lines[2].text, "        return x");
}

TEST(Source, FindsTheCommentsAboveALine) {
  const Source source("a = 1\n# one\n# two\nb = 2\n");
  EXPECT_EQ(source.CommentsAbove(4), 2u);
  EXPECT_EQ(source.CommentsAbove(4, 2), 3u);
  EXPECT_EQ(source.CommentsAbove(1), 1u);
}

TEST(Source, TakesTheEmptyText) {
  const Source source("");
  EXPECT_EQ(source.LineCount(), 0u);
  EXPECT_EQ(source.LineText(1), "");
  EXPECT_TRUE(source.Render({0, 0}, {}).empty());
}

}  // namespace
}  // namespace caisson::workflow::migrate
