// SPDX-License-Identifier: Apache-2.0
#include "json/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "errors/json.h"
#include "json/reader.h"

namespace caisson::json {
namespace {

std::string Text(const Value& value, const WriteOptions& options = {}) {
  auto text = Write(value, options);
  return text ? *text : "error: " + text.error().message;
}

// Pairs as CPython 3.12 prints them.
TEST(FormatDouble, IsPythonsRepr) {
  const std::pair<double, std::string> cases[] = {
      {0.0, "0.0"},
      {-0.0, "-0.0"},
      {1.0, "1.0"},
      {-1.5, "-1.5"},
      {0.1, "0.1"},
      {100.0, "100.0"},
      {1e15, "1000000000000000.0"},
      {1e16, "1e+16"},
      {1.5e16, "1.5e+16"},
      {123456789012345680.0, "1.2345678901234568e+17"},
      {9007199254740993.0, "9007199254740992.0"},
      {0.0001, "0.0001"},
      {0.00012345, "0.00012345"},
      {0.00001, "1e-05"},
      {1.5e-7, "1.5e-07"},
      {5e-324, "5e-324"},
      {1e100, "1e+100"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {2.2250738585072014e-308, "2.2250738585072014e-308"},
      {1e22, "1e+22"},
      {1e23, "1e+23"},
      {123.456, "123.456"},
      {1234567.0, "1234567.0"},
      {0.3333333333333333, "0.3333333333333333"},
  };
  for (const auto& [number, text] : cases) EXPECT_EQ(FormatDouble(number), text);
  EXPECT_EQ(FormatDouble(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(FormatDouble(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(FormatDouble(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(Write, KeepsTheOrderOfKeysAndWritesCompactly) {
  const Value value = Object{{"b", Array{1, 2.0, nullptr, true}}, {"a", Object{}}, {"c", Array{}}};
  EXPECT_EQ(Text(value), R"({"b":[1,2.0,null,true],"a":{},"c":[]})");
  EXPECT_EQ(Text(value, {.spaced = true}), R"({"b": [1, 2.0, null, true], "a": {}, "c": []})");
  EXPECT_EQ(Text(value, {.sort_keys = true}), R"({"a":{},"b":[1,2.0,null,true],"c":[]})");
}

TEST(Write, IndentsAsPythonDoes) {
  const Value value = Object{{"b", Array{1, Object{{"x", "y"}}}}, {"a", Object{}}, {"c", Array{}}};
  EXPECT_EQ(Text(value, {.indent = 2}),
            "{\n  \"b\": [\n    1,\n    {\n      \"x\": \"y\"\n    }\n  ],\n"
            "  \"a\": {},\n  \"c\": []\n}");
}

TEST(Write, EscapesWhatJsonRequires) {
  EXPECT_EQ(Text(std::string("a\"b\\c\n\r\t\b\f\x01\x1f/\x7f", 14)),
            "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u001f/\x7f\"");
  EXPECT_EQ(Text(std::string("\0nul", 4)), "\"\\u0000nul\"");
  EXPECT_EQ(Text("grün 𝄞"), "\"grün 𝄞\"");
  EXPECT_EQ(Text("grün 𝄞 €\x7f", {.ensure_ascii = true}),
            "\"gr\\u00fcn \\ud834\\udd1e \\u20ac\\u007f\"");
}

TEST(Write, EscapesAtEveryOffset) {
  for (std::size_t size = 0; size < 40; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      std::string text(size, 'x');
      text[at] = '"';
      const std::string expected =
          "\"" + std::string(at, 'x') + "\\\"" + std::string(size - at - 1, 'x') + "\"";
      EXPECT_EQ(Text(text), expected);
      EXPECT_EQ(Text(text, {.ensure_ascii = true}), expected);
    }
  }
}

TEST(Write, RefusesWhatIsNoJsonAndNamesThePath) {
  auto bad =
      Write(Object{{"a", Array{1, Object{{"b c", std::numeric_limits<double>::infinity()}}}}});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, errors::kJsonNotRepresentable);
  EXPECT_EQ(bad.error().message, "the value at $.a[1][\"b c\"] has no JSON form: it is infinite");
  EXPECT_FALSE(Write(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(Write("\xed\xa0\x80"));  // a surrogate as UTF-8
  EXPECT_FALSE(Write("\xff"));
  EXPECT_FALSE(Write(Object{{"\xc3", 1}}));
}

TEST(Write, RefusesWhatIsTooDeep) {
  Value value = Array{};
  for (std::size_t i = 0; i < kMaxWriteDepth - 1; ++i) value = Array{std::move(value)};
  EXPECT_TRUE(Write(value));
  value = Array{std::move(value)};
  auto text = Write(value);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, errors::kJsonTooDeep);
}

TEST(WriteCanonical, IsTheSameForEqualValues) {
  const Value one = Object{{"é", 1}, {"z", 2}, {"𝄞", 3}, {"\xef\xbf\xbd", 4}};
  const Value two = Object{{"𝄞", 3}, {"\xef\xbf\xbd", 4}, {"z", 2}, {"é", 1}};
  EXPECT_EQ(*WriteCanonical(one), *WriteCanonical(two));
  EXPECT_EQ(*WriteCanonical(one), "{\"z\":2,\"é\":1,\"\xef\xbf\xbd\":4,\"𝄞\":3}");
}

TEST(Quote, RepairsWhatIsNoUtf8) {
  EXPECT_EQ(Quote("a\"b"), R"("a\"b")");
  EXPECT_EQ(Quote("a\xffé\xc3"), "\"a\xef\xbf\xbdé\xef\xbf\xbd\"");
}

TEST(Write, RoundTripsDoublesExactly) {
  std::uint64_t bits = 0x9e3779b97f4a7c15;
  for (int i = 0; i < 20'000; ++i) {
    bits = bits * 6364136223846793005u + 1442695040888963407u;
    double number = 0;
    static_assert(sizeof number == sizeof bits);
    std::memcpy(&number, &bits, sizeof bits);
    if (!std::isfinite(number)) continue;
    auto back = Read(Text(number));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, Value(number));
  }
}

std::string Joined(const Value& value, const WriteOptions& options, std::size_t& longest) {
  std::string text;
  auto written = WritePieces(
      value,
      [&](std::string_view piece) {
        longest = std::max(longest, piece.size());
        text += piece;
        return true;
      },
      options);
  return written ? text : "error: " + written.error().message;
}

TEST(WritePieces, GivesTheSameTextInSmallPieces) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += i % 7 == 0 ? "\n" : i % 5 == 0 ? "\xE2\x82\xAC" : "x";
  Array numbers;
  for (int i = 0; i < 50'000; ++i) numbers.emplace_back(i);
  const Value value = Object{{"text", text}, {"numbers", numbers}, {text, 1}, {"e", Array{}}};
  for (const WriteOptions& options :
       {WriteOptions{}, WriteOptions{.indent = 2}, WriteOptions{.ensure_ascii = true},
        WriteOptions{.sort_keys = true}}) {
    std::size_t longest = 0;
    EXPECT_EQ(Joined(value, options, longest), Text(value, options));
    EXPECT_LT(longest, 1u << 20);
    EXPECT_GT(longest, 0u);
  }
}

TEST(WritePieces, HandsNothingOverOfWhatHasNoJsonForm) {
  Array items(200'000, Value(1));
  items.emplace_back(std::numeric_limits<double>::infinity());
  std::size_t longest = 0;
  EXPECT_EQ(Joined(items, {}, longest),
            "error: the value at $[200000] has no JSON form: it is infinite");
  EXPECT_EQ(longest, 0u);
}

TEST(WritePieces, StopsHandingOverWhenNoMoreIsWanted) {
  int pieces = 0;
  EXPECT_TRUE(WritePieces(Array(200'000, Value(1)), [&](std::string_view) {
    ++pieces;
    return false;
  }));
  EXPECT_EQ(pieces, 1);
}

}  // namespace
}  // namespace caisson::json
