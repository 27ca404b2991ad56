// SPDX-License-Identifier: Apache-2.0
#include "json/reader.h"

#include <gtest/gtest.h>

#include "errors/json.h"
#include "json/writer.h"

namespace caisson::json {
namespace {

std::string RoundTrip(std::string_view text) {
  auto value = Read(text);
  return value ? *Write(*value) : "error: " + value.error().message;
}

std::string ErrorOf(std::string_view text, const ReadOptions& options = {}) {
  auto value = Read(text, options);
  return value ? "accepted" : std::string(value.error().code.name) + ": " + value.error().message;
}

TEST(Read, AcceptsEveryKindOfValue) {
  EXPECT_EQ(RoundTrip(" { \"a\" : [ 1 , -2 , 3.5 , true , false , null , \"x\" , {} , [] ] } \n"),
            R"({"a":[1,-2,3.5,true,false,null,"x",{},[]]})");
  for (const char* text : {"0", "-1", "1.5", "\"\"", "null", "true", "false", "[]", "{}"}) {
    EXPECT_EQ(RoundTrip(text), text);
  }
}

TEST(Read, KeepsIntegersAndFloatsApart) {
  EXPECT_EQ(RoundTrip("[1,1.0,1e0,-0,-0.0,0e5,1E+2]"), "[1,1.0,1.0,0,-0.0,0.0,100.0]");
  EXPECT_EQ(RoundTrip("123456789012345678901234567890"), "123456789012345678901234567890");
  EXPECT_EQ(RoundTrip("-9223372036854775809"), "-9223372036854775809");
  EXPECT_EQ(RoundTrip("18446744073709551615"), "18446744073709551615");
}

TEST(Read, TakesTinyNumbersForZeroAndRefusesHugeOnes) {
  EXPECT_EQ(RoundTrip("[1e-999,-1e-999,5e-324,0.0000001e-330]"), "[0.0,-0.0,5e-324,0.0]");
  EXPECT_EQ(RoundTrip("0." + std::string(400, '0') + "1e402"), "10.0");
  const std::string beyond = "the number is beyond the range of a double";
  for (const char* text : {"1e309", "-1e309", "1e99999999999999999999", "0.001e312", "1000e306"}) {
    EXPECT_EQ(ErrorOf(text), "json.syntax: line 1, column 1: " + beyond) << text;
  }
  EXPECT_EQ(RoundTrip("1e-99999999999999999999"), "0.0");
}

TEST(Read, DecodesEscapes) {
  auto value = Read(R"("\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC\ud834\udd1e\u0000")");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->as_string(), std::string("\"\\/\b\f\n\r\tAé€𝄞\0", 19));
}

TEST(Read, LetsTheLastDuplicateWinInTheFirstPlace) {
  EXPECT_EQ(RoundTrip(R"({"a":1,"b":2,"a":3})"), R"({"a":3,"b":2})");
  EXPECT_EQ(ErrorOf("{\"x\":{\"a\":1,\n \"a\":3}}", {.reject_duplicate_keys = true}),
            "json.duplicate_key: line 2, column 2 ($.x.a): the key occurs twice in one object; "
            "keep one of them");
}

struct Refusal {
  std::string text;
  std::string error;
};

TEST(Read, RefusesWhatIsNotJsonAndSaysWhere) {
  const std::string kNoNumber =
      " is not a JSON number (digits on both sides of '.' and after 'e', no leading 0)";
  const Refusal cases[] = {
      {"", "line 1, column 1: the text is empty; a JSON value was expected"},
      {" \n ", "line 2, column 2: the text is empty; a JSON value was expected"},
      {"nul", "line 1, column 1: expected a value, found 'n'"},
      {"NaN", "line 1, column 1: expected a value, found 'N'; NaN is not JSON"},
      {"[Infinity]", "line 1, column 2 ($[0]): expected a value, found 'I'; Infinity is not JSON"},
      {"[-Infinity]", "line 1, column 2 ($[0]): \"-Infinity\"" + kNoNumber},
      {"{'a':1}", "line 1, column 2: expected a key in double quotes, found '''"},
      {"['a']",
       "line 1, column 2 ($[0]): expected a value, found '''; strings stand in double "
       "quotes"},
      {"True", "line 1, column 1: expected a value, found 'T'; True is not JSON"},
      {"[1,]", "line 1, column 4: there is a ',' before ']'; remove it"},
      {"{\"a\":1,}", "line 1, column 8: there is a ',' before '}'; remove it"},
      {"[1 2]", "line 1, column 4: expected ',' or ']' in an array, found '2'"},
      {"[1", "line 1, column 3: expected ',' or ']' in an array, found the end of the text"},
      {"{\"a\" 1}", "line 1, column 6: expected ':' after a key, found '1'"},
      {"{\"a\":", "line 1, column 6 ($.a): the text ends where a value was expected"},
      {"{1:2}", "line 1, column 2: expected a key in double quotes, found '1'"},
      {"{} x", "line 1, column 4: there is text after the end of the JSON value: 'x'"},
      {"01", "line 1, column 1: \"01\"" + kNoNumber},
      {"-", "line 1, column 1: \"-\"" + kNoNumber},
      {"+1", "line 1, column 1: expected a value, found '+'"},
      {".5", "line 1, column 1: expected a value, found '.'"},
      {"1.", "line 1, column 1: \"1.\"" + kNoNumber},
      {"[1e]", "line 1, column 2 ($[0]): \"1e\"" + kNoNumber},
      {"1.2.3 ", "line 1, column 1: \"1.2.3\"" + kNoNumber},
      {"[" + std::string(100, '1') + "x]",
       "line 1, column 2 ($[0]): \"" + std::string(40, '1') + "\"" + kNoNumber},
      {"[1]]", "line 1, column 4: there is text after the end of the JSON value: ']'"},
      {"\"abc", "line 1, column 1: the string that begins here has no closing quote"},
      {"\"a\nb\"",
       "line 1, column 3: a string may not contain the end of the line; write it as an "
       "escape"},
      {std::string("\"a\0b\"", 5),
       "line 1, column 3: a string may not contain the control "
       "character 0x00; write it as an escape"},
      {"\"\\x41\"", "line 1, column 2: a backslash must be followed by one of \" \\ / b f n r t u"},
      {"\"\\", "line 1, column 2: a backslash must be followed by one of \" \\ / b f n r t u"},
      {"\"\\u12g4\"", "line 1, column 2: \\u must be followed by four hexadecimal digits"},
      {"\"\\u+123\"", "line 1, column 2: \\u must be followed by four hexadecimal digits"},
      {"\"\\ud800\"", "line 1, column 2: a high surrogate escape stands without its low one"},
      {"\"\\ud800\\u0041\"",
       "line 1, column 2: a high surrogate escape stands without its low one"},
      {"\"\\udc00\"", "line 1, column 2: a low surrogate escape stands without its high one"},
      {"// c\n1", "line 1, column 1: expected a value, found '/'"},
      {"[1,\n \"\xff\"]", "line 2, column 3: the text is not valid UTF-8"},
      {"\"\xed\xa0\x80\"", "line 1, column 2: the text is not valid UTF-8"},
      {"\"\xc0\x80\"", "line 1, column 2: the text is not valid UTF-8"},
      {std::string(5000, ' ') + "é\xc3", "line 1, column 5003: the text is not valid UTF-8"},
      {"\xef\xbb\xbf{}",
       "line 1, column 1: the text begins with a byte order mark; save it as "
       "UTF-8 without one"},
      {"\x0c[]", "line 1, column 1: expected a value, found the control character 0x0c"},
  };
  for (const Refusal& refusal : cases) {
    EXPECT_EQ(ErrorOf(refusal.text), "json.syntax: " + refusal.error) << refusal.text;
  }
}

// simdjson tells of a string that is not closed, or holds a control character, before all else.
TEST(Read, NamesTheFirstErrorAndThePathOfABrokenString) {
  const Refusal cases[] = {
      {"{\"a\":[1,{\"b\":\"x\ny\"}]}",
       "line 1, column 16 ($.a[1].b): a string may not contain the end of the line; write it as an "
       "escape"},
      {"{\"a\":[1,\"x}",
       "line 1, column 9 ($.a[1]): the string that begins here has no closing quote"},
      {"{\"a\":1,\"b", "line 1, column 8: the string that begins here has no closing quote"},
      {"[1 2,\"x\n\"]", "line 1, column 4: expected ',' or ']' in an array, found '2'"},
      {"{\"a\":{} \"x\n\":1}", "line 1, column 9: expected ',' or '}' in an object, found '\"'"},
      {"[\"\\x\n\"]",
       "line 1, column 3 ($[0]): a backslash must be followed by one of \" \\ / b f n r t u"},
      {"[\"\\\n\"]",
       "line 1, column 3 ($[0]): a backslash must be followed by one of \" \\ / b f n r t u"},
      {"[\"a\tb\", tru]",
       "line 1, column 4 ($[0]): a string may not contain the control character 0x09; write it as "
       "an escape"},
      {"1 \"", "line 1, column 3: there is text after the end of the JSON value: '\"'"},
  };
  for (const Refusal& refusal : cases) {
    EXPECT_EQ(ErrorOf(refusal.text), "json.syntax: " + refusal.error) << refusal.text;
  }
}

TEST(Read, NamesThePathOfANestedError) {
  EXPECT_EQ(ErrorOf("{\"nodes\":[{},{},{},\n{\"id\":\"n\",\"odd key\":[0,bad]}]}"),
            "json.syntax: line 2, column 24 ($.nodes[3][\"odd key\"][1]): expected a value, found "
            "'b'");
}

TEST(Read, SpansCountBytesFromZero) {
  auto value = Read("[\n\"é\" x]");
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().span, (SourceSpan{2, 5, 2, 6}));
}

TEST(Read, StopsAtItsLimits) {
  const std::string fits = std::string(1000, '[') + std::string(1000, ']');
  EXPECT_EQ(RoundTrip(fits), fits);
  EXPECT_TRUE(ErrorOf("[" + fits + "]").starts_with("json.too_deep: line 1, column 1001 ($[0]"));
  EXPECT_TRUE(ErrorOf(std::string(5'000'000, '[')).starts_with("json.too_deep"));
  std::string objects;
  for (int i = 0; i < 2'000; ++i) objects += "{\"a\":";
  EXPECT_TRUE(ErrorOf(objects).starts_with("json.too_deep"));
  EXPECT_EQ(ErrorOf("[1,2]", {.max_bytes = 4}),
            "json.too_large: the JSON text has 5 bytes; at most 4 are allowed");
  const std::string digits(4300, '7');
  EXPECT_EQ(RoundTrip("-" + digits), "-" + digits);
  EXPECT_EQ(ErrorOf("[" + digits + "7]"),
            "json.too_large: line 1, column 2 ($[0]): an integer has more than 4300 digits");
  for (const char* text : {"[123]", "[-123 ]", "[123\n]", "[1.23456]"}) {
    EXPECT_EQ(ErrorOf(text, {.max_integer_digits = 3}), "accepted") << text;
  }
  EXPECT_EQ(ErrorOf("[1,1234]", {.max_integer_digits = 3}),
            "json.too_large: line 1, column 4 ($[1]): an integer has more than 3 digits");
}

TEST(Read, ReadsAsDeepAsItIsAllowedTo) {
  constexpr std::size_t kDepth = 4002;
  std::string text;
  for (std::size_t i = 0; i < kDepth; i += 2) text += "[{\"a\":";
  text += "1";
  for (std::size_t i = 0; i < kDepth; i += 2) text += "}]";
  EXPECT_TRUE(Read(text, {.max_depth = kDepth}));
  EXPECT_TRUE(ErrorOf(text, {.max_depth = kDepth - 1}).starts_with("json.too_deep"));
  EXPECT_EQ(
      ErrorOf("[]", {.max_depth = 0}),
      "json.too_deep: line 1, column 1: arrays and objects are nested more than 0 levels deep");
}

TEST(Read, ManyEqualAndManyDifferentKeysCostLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += "\"key" + std::to_string(i % 100'000) + "\":1,";
  text.back() = '}';
  auto value = Read(text);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->as_object().size(), 100'000u);
}

}  // namespace
}  // namespace caisson::json
