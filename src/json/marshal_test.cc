// SPDX-License-Identifier: Apache-2.0
// That CPython reads these bytes as the text's value, tests/block/test_inputs.py shows in the
// guest.
#include "json/marshal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "errors/json.h"

namespace caisson::json {
namespace {

std::string HexOf(std::string_view text) {
  const auto bytes = ToMarshal(text);
  if (!bytes) return bytes.error().message;
  std::string hex;
  for (const char byte : *bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

TEST(Marshal, WritesScalars) {
  EXPECT_EQ(HexOf("null"), "4e");
  EXPECT_EQ(HexOf(" true "), "54");
  EXPECT_EQ(HexOf("false"), "46");
  EXPECT_EQ(HexOf("1.5"), "67000000000000f83f");
  EXPECT_EQ(HexOf("-0.0"), "670000000000000080");
}

TEST(Marshal, WritesIntegersOfAnySize) {
  EXPECT_EQ(HexOf("0"), "6900000000");
  EXPECT_EQ(HexOf("-1"), "69ffffffff");
  EXPECT_EQ(HexOf("2147483647"), "69ffffff7f");
  EXPECT_EQ(HexOf("-2147483648"), "6900000080");
  EXPECT_EQ(HexOf("2147483648"), "6c03000000000000000200");
  EXPECT_EQ(HexOf("-2147483649"), "6cfdffffff010000000200");
  EXPECT_EQ(HexOf("9223372036854775807"), "6c05000000ff7fff7fff7fff7f0700");
  EXPECT_EQ(HexOf("-9223372036854775808"), "6cfbffffff00000000000000000800");
  EXPECT_EQ(HexOf("123456789012345678901234567890"), "6c07000000d20a7e1cb9039f1b6c7f215d6300");
  EXPECT_EQ(HexOf("-100000000000000000000"), "6cfbffffff00002046b5783a5e5600");
  EXPECT_EQ(HexOf("18446744073709551616"), "6c0500000000000000000000001000");
}

TEST(Marshal, WritesText) {
  EXPECT_EQ(HexOf("\"\""), "7a00");
  EXPECT_EQ(HexOf("\"a\\n\""), "7a02610a");
  EXPECT_EQ(HexOf("\"\\u00e9\""), "7502000000c3a9");
  EXPECT_EQ(HexOf('"' + std::string(255, 'x') + '"').substr(0, 4), "7aff");
  EXPECT_EQ(HexOf('"' + std::string(256, 'x') + '"').substr(0, 10), "6100010000");
}

TEST(Marshal, CountsTheItemsOfEachList) {
  EXPECT_EQ(HexOf("[]"), "5b00000000");
  EXPECT_EQ(HexOf("[null,[true],{\"a\":[],\"b\":1}]"),
            "5b030000004e5b01000000547bda01615b00000000da016269010000003"
            "0");
}

TEST(Marshal, WritesAKeyOnce) {
  EXPECT_EQ(HexOf("[{\"a\":null,\"\\u00e9\":null},{\"\\u00e9\":null,\"a\":null}]"),
            "5b020000007bda01614ef402000000c3a94e307b72010000004e72000000004e30");
  std::string text = "[";
  for (int i = 0; i < 5000; ++i)
    text += "{\"" + std::to_string(i) + "\":0},{\"" + std::to_string(i) + "\":0},";
  text.back() = ']';
  EXPECT_TRUE(ToMarshal(text));
}

TEST(Marshal, RefusesWhatTheReaderRefuses) {
  EXPECT_EQ(HexOf("[1,]"), Read("[1,]").error().message);
  EXPECT_EQ(ToMarshal("[[1]]", {.max_depth = 1}).error().code, errors::kJsonTooDeep);
}

}  // namespace
}  // namespace caisson::json
