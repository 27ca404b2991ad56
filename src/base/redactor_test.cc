// SPDX-License-Identifier: Apache-2.0
#include "base/redactor.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

Redactor Of(std::string_view secret) {
  Redactor redactor;
  redactor.Add(secret, "[[k]]");
  return redactor;
}

TEST(Redactor, finds_a_secret_in_the_forms_that_formats_give_it) {
  const Redactor redactor = Of("a\"\\x/7 é&\n😀");
  for (const char* form :
       {"a\"\\x/7 é&\n😀", "a%22%5Cx%2F7+%C3%A9%26%0A%F0%9F%98%80",
        "a%22\\x/7%20%c3%a9&%0a%f0%9f%98%80", R"(a\"\\x/7 é&\n😀)",
        R"(a\"\\x\/7 \u00e9\u0026\n\ud83d\ude00)", R"(a\\\"\\\\x/7 \\u00E9&\\n\\uD83D\\uDE00)",
        R"(a\\\"\\\\x/7 \u00e9&\\n\ud83d\ude00)", "a&quot;\\x/7 é&amp;\n😀",
        R"(a"\\x/7 \xe9&\x0a😀)"}) {
    EXPECT_EQ(redactor.Redact("<" + std::string(form) + ">"), "<[[k]]>") << form;
  }
  EXPECT_EQ(redactor.Redact("a\"\\x/7 "), "a\"\\x/7 ");
}

TEST(Redactor, takes_the_longest_of_several_and_leaves_placeholders_alone) {
  Redactor redactor;
  redactor.Add("abc", "[[token]]");
  redactor.Add("abcdef", "[[b]]");
  redactor.Add("token", "[[c]]");
  redactor.Add("", "[[d]]");
  EXPECT_EQ(redactor.Redact("abcdef abc token"), "[[b]] [[token]] [[c]]");
}

TEST(Redactor, reads_runs_of_backslashes_in_time) {
  const Redactor redactor = Of(std::string(40, '\\') + "x");
  const std::string text(20'000, '\\');
  EXPECT_EQ(redactor.Redact(text), text);
  EXPECT_EQ(redactor.Redact(std::string(80, '\\') + "x"), "[[k]]");
}

TEST(Redactor, says_how_much_of_a_text_is_settled) {
  const Redactor redactor = Of("se\"cret");
  EXPECT_EQ(redactor.Settled("nothing"), 7u);
  EXPECT_EQ(redactor.Settled("is se"), 3u);
  EXPECT_EQ(redactor.Settled("is se%2"), 3u);
  EXPECT_EQ(redactor.Settled("is se\\"), 3u);
  EXPECT_EQ(redactor.Settled("is seldom"), 9u);
  EXPECT_EQ(redactor.Settled("is se\"cret"), 10u);
}

TEST(Redactor, takes_bytes_that_are_no_text) {
  const Redactor redactor = Of("a\xff\xc3");
  EXPECT_EQ(redactor.Redact("1a\xff\xc3"
                            "2"),
            "1[[k]]2");
  EXPECT_EQ(redactor.Redact("a%FF%C3"), "[[k]]");
}

}  // namespace
}  // namespace caisson
