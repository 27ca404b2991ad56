// SPDX-License-Identifier: Apache-2.0
#include "base/foreign_text.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace caisson {
namespace {

TEST(ForeignText, ShowsOrdinaryTextAsItIs) {
  EXPECT_EQ(ShowForeign("Grüße, 你好 👩‍🚀 a\tb"), "Grüße, 你好 👩‍🚀 a\tb");
  EXPECT_EQ(ShowForeign(""), "");
}

TEST(ForeignText, EscapesWhatSteersATerminal) {
  EXPECT_EQ(ShowForeign("\x1b[2Jgone\x07"), "\\x1b[2Jgone\\x07");
  EXPECT_EQ(ShowForeign("a\rb\x7f"), "a\\rb\\x7f");
  EXPECT_EQ(ShowForeign("\xC2\x9B"
                        "2J"),
            "\\u009b2J");  // CSI as one C1 character
  EXPECT_EQ(ShowForeign("\x9B"
                        "2J"),
            "\\x9b2J");  // and as a byte of Latin-1
  EXPECT_EQ(ShowForeign(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(ForeignText, EscapesWhatTurnsOrHidesText) {
  EXPECT_EQ(ShowForeign("\u202Eevil\u2066\u2069\u200F\u061C"),
            "\\u202eevil\\u2066\\u2069\\u200f\\u061c");
  EXPECT_EQ(ShowForeign("a\u2028b\u2029c\u0085d"), "a\\u2028b\\u2029c\\u0085d");
  EXPECT_EQ(ShowForeign("a\u200Bb\uFEFFc\U000E0041"), "a\\u200bb\\ufeffc\\U000e0041");
}

TEST(ForeignText, MarksEveryLineButTheFirst) {
  EXPECT_EQ(ShowForeign("x\ncaisson: info: all is well"), "x\n  | caisson: info: all is well");
  EXPECT_EQ(ShowForeign("x\r\ny\n", "> "), "x\\r\n> y\n> ");
  EXPECT_EQ(ShowForeignLine("x\ny\tz"), "x\\ny\\tz");
}

TEST(ForeignText, CutsWhatIsTooLongAndSaysByHowMuch) {
  EXPECT_EQ(ShowForeign(std::string(5000, 'x')), std::string(4096, 'x') + " [... 904 more bytes]");
}

TEST(ForeignText, CutsBetweenCharacters) {
  EXPECT_EQ(ShowForeignLine("ääää", 3), "ä [... 6 more bytes]");
  EXPECT_EQ(ShowForeignLine("\x80\x80\x80\x80\x80\x80", 5), "\\x80\\x80 [... 4 more bytes]");
}

TEST(ForeignText, KeepsJsonTheSameDocument) {
  EXPECT_EQ(SafeJson("{\n  \"a\": \"ü\xC2\x9B\u202E\x7F\U000E0041\"\n}"),
            "{\n  \"a\": \"ü\\u009b\\u202e\\u007f\\udb40\\udc41\"\n}");
  EXPECT_EQ(SafeJson("[]"), "[]");
}

TEST(Utf8, KnowsValidCharactersOnly) {
  EXPECT_EQ(CharacterLength("a"), 1u);
  EXPECT_EQ(CharacterLength("ä"), 2u);
  EXPECT_EQ(CharacterLength("€"), 3u);
  EXPECT_EQ(CharacterLength("👩"), 4u);
  EXPECT_EQ(CharacterLength(""), 0u);
  EXPECT_EQ(CharacterLength("\xC3"), 0u);
  EXPECT_EQ(CharacterLength("\xC0\x80"), 0u);
  EXPECT_EQ(CharacterLength("\xED\xA0\x80"), 0u);
  EXPECT_EQ(CharacterLength("\xF4\x90\x80\x80"), 0u);
  EXPECT_EQ(CodePoint("€"), 0x20ACu);
  EXPECT_EQ(CodePoint("👩"), 0x1F469u);
}

}  // namespace
}  // namespace caisson
