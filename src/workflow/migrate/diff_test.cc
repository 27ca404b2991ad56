// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/diff.h"

#include <gtest/gtest.h>

#include <random>

namespace caisson::workflow::migrate {
namespace {

std::string Patched(std::string_view before_text, std::string_view after_text) {
  const auto before = SplitLines(before_text), after = SplitLines(after_text);
  std::string text;
  std::size_t at = 0;
  for (const Change& change : Changes(before, after)) {
    for (; at < change.before; ++at) text.append(before[at]).append(1, '\n');
    at += change.removed;
    for (std::size_t i = 0; i < change.added; ++i) {
      text.append(after[change.after + i]).append(1, '\n');
    }
  }
  for (; at < before.size(); ++at) text.append(before[at]).append(1, '\n');
  return text;
}

TEST(Diff, OfTheSameTextIsEmpty) { EXPECT_EQ(UnifiedDiff("a\nb\n", "a\nb\n", "f", false), ""); }

TEST(Diff, ShowsContextAndPlaces) {
  EXPECT_EQ(UnifiedDiff("1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nfive\n6\n", "f", false),
            "--- f\n+++ f (migrated)\n@@ -2,5 +2,5 @@\n 2\n 3\n 4\n-5\n+five\n 6\n");
}

TEST(Diff, OfTextsThatShareNothingReplacesAll) {
  EXPECT_EQ(UnifiedDiff("", "a\n", "f", false), "--- f\n+++ f (migrated)\n@@ -0,0 +1 @@\n+a\n");
  EXPECT_EQ(UnifiedDiff("a\n", "", "f", false), "--- f\n+++ f (migrated)\n@@ -1 +0,0 @@\n-a\n");
}

TEST(Diff, MakesTheOneOfTheOther) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string before, after;
    for (unsigned i = random() % 12; i > 0; --i)
      before += std::string(1, "abc"[random() % 3]) + "\n";
    for (unsigned i = random() % 12; i > 0; --i)
      after += std::string(1, "abc"[random() % 3]) + "\n";
    ASSERT_EQ(Patched(before, after), after) << before << "---\n" << after;
  }
}

TEST(Diff, IsShort) {
  const auto changes = Changes(SplitLines("a\nb\nc\nd\n"), SplitLines("a\nc\nd\ne\n"));
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].removed + changes[1].removed, 1u);
  EXPECT_EQ(changes[0].added + changes[1].added, 1u);
}

TEST(Diff, OfLongTextsEnds) {
  std::string before, after;
  for (int i = 0; i < 20000; ++i) {
    before += std::to_string(i) + "\n";
    after += std::to_string(-i - 1) + "\n";
  }
  EXPECT_EQ(Patched(before, after), after);
}

}  // namespace
}  // namespace caisson::workflow::migrate
