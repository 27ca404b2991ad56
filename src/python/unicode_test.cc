// SPDX-License-Identifier: Apache-2.0
#include "python/unicode.h"

#include <gtest/gtest.h>

namespace caisson::python {
namespace {

TEST(Unicode, NamesAndAliasesDenoteCharacters) {
  EXPECT_EQ(CharacterByName("BULLET"), U'\u2022');
  EXPECT_EQ(CharacterByName("latin Small letter A"), U'a');
  EXPECT_EQ(CharacterByName("NULL"), U'\0');  // an alias
  EXPECT_EQ(CharacterByName("LINE FEED"), U'\n');
  EXPECT_EQ(CharacterByName("ZOMBIE"), U'\U0001F9DF');
  EXPECT_EQ(CharacterByName("SHAKING FACE"), U'\U0001FAE8');  // new in Unicode 15.0
}

TEST(Unicode, NamesByRuleDenoteCharacters) {
  EXPECT_EQ(CharacterByName("HANGUL SYLLABLE GA"), U'\uAC00');
  EXPECT_EQ(CharacterByName("HANGUL SYLLABLE HIH"), U'\uD7A3');
  EXPECT_EQ(CharacterByName("HANGUL SYLLABLE A"), U'\uC544');
  EXPECT_EQ(CharacterByName("HANGUL SYLLABLE HI HI"), std::nullopt);
  EXPECT_EQ(CharacterByName("CJK UNIFIED IDEOGRAPH-4E00"), U'\u4E00');
  EXPECT_EQ(CharacterByName("CJK UNIFIED IDEOGRAPH-323AF"), U'\U000323AF');
  EXPECT_EQ(CharacterByName("CJK UNIFIED IDEOGRAPH-0041"), std::nullopt);
  EXPECT_EQ(CharacterByName("CJK UNIFIED IDEOGRAPH-4e00"), std::nullopt);
}

TEST(Unicode, OtherNamesDenoteNothing) {
  EXPECT_EQ(CharacterByName(""), std::nullopt);
  EXPECT_EQ(CharacterByName("A"), std::nullopt);
  EXPECT_EQ(CharacterByName("BULLETS"), std::nullopt);
  EXPECT_EQ(CharacterByName("ZZZZ"), std::nullopt);
  EXPECT_EQ(CharacterByName("KEYCAP DIGIT ONE"), std::nullopt);  // a named sequence
  EXPECT_EQ(CharacterByName(std::string(10000, 'A')), std::nullopt);
}

TEST(Unicode, IdentifiersFollowXid) {
  EXPECT_TRUE(IsIdentifierStart(U'_'));
  EXPECT_TRUE(IsIdentifierStart(U'\u00E9'));
  EXPECT_TRUE(IsIdentifierStart(U'\u2118'));  // Other_ID_Start
  EXPECT_FALSE(IsIdentifierStart(U'1'));
  EXPECT_FALSE(IsIdentifierStart(U'\u0301'));
  EXPECT_TRUE(IsIdentifierContinue(U'\u0301'));
  EXPECT_TRUE(IsIdentifierContinue(U'\u00B7'));
  EXPECT_FALSE(IsIdentifierContinue(U'\u2019'));
  EXPECT_FALSE(IsIdentifierContinue(U'\u037A'));  // changes under NFKC
}

TEST(Unicode, InvalidUtf8IsFoundAtItsFirstByte) {
  constexpr std::size_t kNone = std::string_view::npos;
  EXPECT_EQ(FindInvalidUtf8("abcdefgh\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"), kNone);
  EXPECT_EQ(FindInvalidUtf8("abcdefghi\xFF"), 9u);
  EXPECT_EQ(FindInvalidUtf8("\xC0\x80"), 0u);          // overlong
  EXPECT_EQ(FindInvalidUtf8("a\xED\xA0\x80"), 1u);     // a surrogate
  EXPECT_EQ(FindInvalidUtf8("\xF4\x90\x80\x80"), 0u);  // beyond U+10FFFF
  EXPECT_EQ(FindInvalidUtf8("\xE2\x82"), 0u);          // cut off
}

}  // namespace
}  // namespace caisson::python
