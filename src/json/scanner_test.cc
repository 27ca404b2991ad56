// SPDX-License-Identifier: Apache-2.0
#include "json/scanner.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "errors/json.h"

namespace caisson::json {
namespace {

std::vector<std::string> ChildrenOf(std::string_view text) {
  std::vector<std::string> children;
  auto report = Scan(text, {}, [&](const ScannedChild& child) {
    children.push_back(std::string(child.key) + "|" + std::string(child.text));
    return true;
  });
  EXPECT_TRUE(report) << text;
  return children;
}

TEST(Scan, TellsWhetherAllThatAChildHoldsAreObjects) {
  std::string told;
  ASSERT_TRUE(Scan(R"([[], [ {} ,{"a":1}], [{},1], [1], [[{}]], {"a":{}}, {"a":1}, 1])", {},
                   [&](const ScannedChild& child) {
                     told += child.only_objects ? 'y' : 'n';
                     return true;
                   }));
  EXPECT_EQ(told, "yynnnyny");
}

TEST(Scan, AgreesWithTheReaderOnWhatIsJsonAndWhatIsWrong) {
  const std::string deep(1001, '[');
  for (const std::string& text : std::vector<std::string>{"null",
                                                          " true ",
                                                          "false",
                                                          "0",
                                                          "-0",
                                                          "-1.5e+3",
                                                          "\"\"",
                                                          "[]",
                                                          "{}",
                                                          "[1,[2,{}],{\"a\":[]}]",
                                                          "{\"a\":1,\"b\":{\"c\":[null]}}",
                                                          "\"\\ud834\\udd1e\"",
                                                          "\"\\u0000\"",
                                                          "1e-999",
                                                          "5e-324",
                                                          "\"\\ud834\"",
                                                          "\"\\udd1e\"",
                                                          "\"\\ud834\\u0041\"",
                                                          "\"\\x\"",
                                                          "\"\\u12\"",
                                                          "\"a",
                                                          "\"\n\"",
                                                          "",
                                                          " ",
                                                          "nul",
                                                          "tru",
                                                          "NaN",
                                                          "Infinity",
                                                          "-",
                                                          "01",
                                                          "1.",
                                                          ".5",
                                                          "1e",
                                                          "1e+",
                                                          "1e309",
                                                          "[1,]",
                                                          "[,1]",
                                                          "[1 2]",
                                                          "[",
                                                          "]",
                                                          "{\"a\"}",
                                                          "{\"a\":}",
                                                          "{a:1}",
                                                          "{\"a\":1,}",
                                                          "{,}",
                                                          "[1]]",
                                                          "1 2",
                                                          "\xef\xbb\xbf"
                                                          "1",
                                                          "\"\xff\"",
                                                          "\"\xed\xa0\x80\"",
                                                          std::string("1\0", 2),
                                                          "\n\n[4\f",
                                                          "{\"a\":4\f}",
                                                          std::string("\"\0\"", 3),
                                                          "'a'",
                                                          "[1}",
                                                          "{\"a\":1]",
                                                          "{\"a\":1 \"b\":2}",
                                                          "[[]]",
                                                          "[{}]",
                                                          "{\"a\":{}}",
                                                          "[[],[]]",
                                                          "\"\\",
                                                          "{\"a\":1,\"a\":2}",
                                                          deep + std::string(1001, ']'),
                                                          deep.substr(1) + std::string(1000, ']'),
                                                          std::string(4300, '7'),
                                                          std::string(4301, '7')}) {
    const auto report = Scan(text);
    const auto value = Read(text);
    ASSERT_EQ(report.has_value(), value.has_value()) << text.substr(0, 40);
    if (!report) {
      EXPECT_EQ(report.error().message, value.error().message);
    }
  }
}

TEST(Scan, TellsTheItemsOfTheOutermostArray) {
  EXPECT_EQ(
      ChildrenOf(" [ 1 , [2,[3]] ,{\"a\":[4]}, \"x,]\" , [] , null ] "),
      (std::vector<std::string>{"|1", "|[2,[3]]", "|{\"a\":[4]}", "|\"x,]\"", "|[]", "|null"}));
  EXPECT_EQ(ChildrenOf("[ 123456789012345678901234567890 , 1e-999, 0.1234567890123456789012 ]"),
            (std::vector<std::string>{"|123456789012345678901234567890", "|1e-999",
                                      "|0.1234567890123456789012"}));
  EXPECT_EQ(ChildrenOf("[]"), std::vector<std::string>{});
  EXPECT_EQ(ChildrenOf("7"), std::vector<std::string>{});
}

TEST(Scan, TellsTheMembersOfTheOutermostObject) {
  EXPECT_EQ(ChildrenOf(R"({"a" : {"b":1}, "c\n":[ {"d":2} ] , "e":"f"})"),
            (std::vector<std::string>{R"("a"|{"b":1})", R"("c\n"|[ {"d":2} ])", R"("e"|"f")"}));
}

TEST(Scan, TellsTheKindOfTheWholeAndOfEachChild) {
  EXPECT_EQ(Scan(" [1] ")->kind, Value::Kind::kArray);
  EXPECT_EQ(Scan(" [1] ")->text, "[1]");
  EXPECT_EQ(Scan("\"x\"")->kind, Value::Kind::kString);
  std::vector<Value::Kind> kinds;
  ASSERT_TRUE(Scan("[null,true,-1,\"\",[],{}]", {}, [&](const ScannedChild& child) {
    kinds.push_back(child.kind);
    return true;
  }));
  EXPECT_EQ(kinds, (std::vector<Value::Kind>{Value::Kind::kNull, Value::Kind::kBool,
                                             Value::Kind::kDouble, Value::Kind::kString,
                                             Value::Kind::kArray, Value::Kind::kObject}));
}

TEST(Scan, StopsWhereItIsTold) {
  int seen = 0;
  auto report = Scan("[1,2,nonsense", {}, [&](const ScannedChild&) { return ++seen < 2; });
  EXPECT_TRUE(report);
  EXPECT_EQ(seen, 2);
}

TEST(Scan, SeesLineEndsBetweenTokens) {
  EXPECT_FALSE(Scan("[1, \"\\n\"]")->has_line_end);
  EXPECT_TRUE(Scan("[1,\n2]")->has_line_end);
  EXPECT_TRUE(Scan("[1,2]\r")->has_line_end);
}

TEST(Scan, SaysWhereAnErrorLiesAndOfWhichKindItIs) {
  const auto syntax = Scan("[1,\n  x]");
  ASSERT_FALSE(syntax);
  EXPECT_EQ(syntax.error().code, errors::kJsonSyntax);
  EXPECT_EQ(syntax.error().message, "line 2, column 3 ($[1]): expected a value, found 'x'");
  EXPECT_EQ(Scan("{\"a\":[[],{\"b\\n\":[0,01]}]}").error().message,
            "line 1, column 20 ($.a[1][\"b\\n\"][1]): \"01\" is not a JSON number (digits on both "
            "sides of '.' and after 'e', no leading 0)");
  EXPECT_EQ(Scan("[[[1]]]", {.max_depth = 2}).error().code, errors::kJsonTooDeep);
  EXPECT_EQ(Scan("[1]", {.max_bytes = 2}).error().code, errors::kJsonTooLarge);
  EXPECT_EQ(Scan("12345", {.max_integer_digits = 4}).error().code, errors::kJsonTooLarge);
}

}  // namespace
}  // namespace caisson::json
