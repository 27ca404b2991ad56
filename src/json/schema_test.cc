// SPDX-License-Identifier: Apache-2.0
#include "json/schema.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "json/exact_number.h"
#include "json/pattern.h"
#include "json/reader.h"
#include "json/same.h"

namespace caisson::json {
namespace {

Value Parse(std::string_view text) {
  auto value = Read(text);
  EXPECT_TRUE(value.has_value()) << text << ": " << (value ? "" : value.error().message);
  return value.value_or(Value());
}

Schema Compiled(std::string_view text) {
  auto schema = Schema::Compile(Parse(text));
  EXPECT_TRUE(schema.has_value()) << text << ": " << (schema ? "" : schema.error().message);
  return schema.has_value() ? *std::move(schema) : *Schema::Compile(Value(true));
}

// The violations as text, "" when there are none.
std::string Check(std::string_view schema, std::string_view instance) {
  const auto verdict = Compiled(schema).Check(Parse(instance));
  return verdict ? verdict->Text() : std::string(verdict.error().code.name);
}

std::string Refusal(std::string_view schema) {
  const auto compiled = Schema::Compile(Parse(schema));
  if (compiled) return "accepted";
  return std::string(compiled.error().code.name) + " " + compiled.error().message;
}

TEST(Schema, NamesEveryViolationWithItsPath) {
  EXPECT_EQ(Check(R"({"type":"object","properties":{"text":{"type":"string","minLength":1},
                    "limit":{"type":"integer","minimum":1,"maximum":50}},"required":["text","mode"]})",
                  R"({"text":"","limit":0})"),
            "$.mode: is required; $.text: must have at least 1 character, not 0; "
            "$.limit: must be at least 1, not 0");
  EXPECT_EQ(Check(R"({"items":{"type":["string","null"]}})", R"(["a",null,3,true])"),
            "$[2]: must be string or null, not integer; $[3]: must be string or null, not boolean");
}

TEST(Schema, TellsWhatEachAlternativeHasAgainstAValue) {
  EXPECT_EQ(
      Check(R"({"anyOf":[{"type":"integer"},{"type":"array","items":{"const":"a"}}]})", R"(["b"])"),
      "$: fits none of its alternatives: must be integer, not array; or [0] must be \"a\", not "
      "\"b\"");
}

TEST(Schema, ComparesNumbersExactly) {
  EXPECT_EQ(Check(R"({"multipleOf":0.1})", "0.3"), "");
  EXPECT_EQ(Check(R"({"multipleOf":0.01})", "4.35"), "");
  EXPECT_NE(Check(R"({"multipleOf":0.1})", "0.35"), "");
  EXPECT_EQ(Check(R"({"multipleOf":1e-300})", "1e300"), "");
  EXPECT_EQ(Check(R"({"maximum":9007199254740993})", "9007199254740993"), "");
  EXPECT_NE(Check(R"({"maximum":9007199254740992})", "9007199254740993"), "");
  EXPECT_NE(Check(R"({"exclusiveMaximum":100000000000000000000000000000001})",
                  "100000000000000000000000000000001"),
            "");
  EXPECT_EQ(Check(R"({"multipleOf":3})", "300000000000000000000000000000000000003"), "");
  EXPECT_NE(Check(R"({"multipleOf":3})", "300000000000000000000000000000000000004"), "");
  EXPECT_EQ(Check(R"({"type":"integer"})", "1.0"), "");
  EXPECT_EQ(Check(R"({"type":"integer"})", "1e300"), "");
  EXPECT_EQ(Check(R"({"enum":[1]})", "1.0"), "");
  EXPECT_NE(Check(R"({"enum":[1,0]})", "true"), "");
  EXPECT_EQ(Check(R"({"minimum":-0.0})", "0"), "");
}

TEST(Schema, CountsCodePoints) {
  EXPECT_EQ(Check(R"({"maxLength":2})", R"("\ud83d\ude00\ud83d\ude00")"), "");
  EXPECT_NE(Check(R"({"maxLength":1})", R"("\ud83d\ude00\ud83d\ude00")"), "");
}

TEST(Schema, FollowsReferencesInCircles) {
  const std::string tree = R"({"$defs":{"node":{"type":"object","properties":{"value":{"type":
      "integer"},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["value"]}},
      "$ref":"#/$defs/node"})";
  EXPECT_EQ(Check(tree, R"({"value":1,"children":[{"value":2,"children":[]}]})"), "");
  EXPECT_EQ(Check(tree, R"({"value":1,"children":[{"value":2,"children":[{}]}]})"),
            "$.children[0].children[0].value: is required");
  EXPECT_EQ(Check(R"({"$defs":{"a b/c":{"$anchor":"x","type":"null"}},"allOf":[
      {"$ref":"#/$defs/a%20b~1c"},{"$ref":"#x"}]})",
                  "null"),
            "");
}

TEST(Schema, EndsWhereASchemaRefersToItselfWithoutEnd) {
  EXPECT_EQ(Check(R"({"$ref":"#"})", "1"), "json_schema.too_deep");
  EXPECT_EQ(Check(R"({"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}},
                    "$ref":"#/$defs/a"})",
                  "1"),
            "json_schema.too_deep");
}

TEST(Schema, EndsWhereAlternativesMultiply) {
  std::string schema = R"({"$defs":{"l0":{"type":"null"})";
  for (int i = 1; i <= 40; ++i) {
    const std::string below = R"({"$ref":"#/$defs/l)" + std::to_string(i - 1) + "\"}";
    schema += ",\"l" + std::to_string(i) + R"(":{"anyOf":[)" + below + "," + below + "]}";
  }
  schema += R"(},"$ref":"#/$defs/l40"})";
  EXPECT_EQ(Check(schema, "1"), "json_schema.too_costly");
  EXPECT_EQ(Check(schema, "null"), "");
}

TEST(Schema, EndsWhereAPatternRunsAway) {
  const std::string text = "\"" + std::string(60, 'a') + "b\"";
  EXPECT_EQ(Check(R"({"pattern":"^(a+)+$"})", text), "json_schema.too_costly");
}

TEST(Schema, EndsWhereManyPatternsTakeLong) {
  const Schema schema = Compiled(R"({"items":{"pattern":"^(a|a)*$"}})");
  const Value text(std::string(14, 'a') + "b");
  const auto one = schema.Check(Value(Array{text}));
  ASSERT_TRUE(one.has_value()) << "each search keeps within its steps";
  EXPECT_FALSE(one->ok());
  const auto start = std::chrono::steady_clock::now();
  const auto many = schema.Check(Value(Array(200000, text)));
  ASSERT_FALSE(many.has_value());
  EXPECT_EQ(many.error().code.name, "json_schema.too_costly");
  EXPECT_NE(many.error().message.find("seconds"), std::string::npos) << many.error().message;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(Schema, RefusesWhatWouldChangeAVerdict) {
  EXPECT_TRUE(Refusal(R"({"$dynamicRef":"#x"})").starts_with("json_schema.unsupported "));
  EXPECT_TRUE(Refusal(R"({"properties":{"a":{"unevaluatedProperties":false}}})")
                  .starts_with("json_schema.unsupported the schema, at #/properties/a/"));
  EXPECT_TRUE(
      Refusal(R"({"$ref":"https://example.com/x.json"})").starts_with("json_schema.unsupported "));
  EXPECT_TRUE(Refusal(R"({"$schema":"http://json-schema.org/draft-07/schema#"})")
                  .starts_with("json_schema.unsupported "));
  EXPECT_TRUE(Refusal(R"({"allOf":[{"$id":"x"}]})").starts_with("json_schema.unsupported "));
  EXPECT_TRUE(Refusal(R"({"$ref":"#/$defs/none"})").starts_with("json_schema.reference "));
  EXPECT_EQ(Refusal(R"({"$schema":"https://json-schema.org/draft/2020-12/schema"})"), "accepted");
  EXPECT_EQ(Refusal(R"({"$id":"https://e.com/a","allOf":[{"$ref":"https://e.com/a#/$defs/b"}],
                     "$defs":{"b":true}})"),
            "accepted");
}

TEST(Schema, IgnoresWhatItDoesNotKnow) {
  EXPECT_EQ(Check(R"({"format":"email","discriminator":{"propertyName":"k"},"title":1,"ge":5})",
                  R"("x")"),
            "");
  EXPECT_EQ(Check(R"({"properties":{"$ref":{"type":"integer"},"unevaluatedItems":true}})",
                  R"({"$ref":1})"),
            "");
}

TEST(Schema, RefusesMalformedKeywords) {
  for (const char* schema : {R"({"type":"strin"})",
                             R"({"type":[]})",
                             R"({"minLength":-1})",
                             R"({"minLength":1.5})",
                             R"({"minimum":"1"})",
                             R"({"multipleOf":0})",
                             R"({"required":"a"})",
                             R"({"required":[1]})",
                             R"({"properties":[]})",
                             R"({"items":[{}]})",
                             R"({"allOf":[]})",
                             R"({"allOf":{}})",
                             R"({"pattern":"("})",
                             R"({"patternProperties":{"(":{}}})",
                             R"({"not":1})",
                             "1",
                             "\"x\"",
                             R"({"uniqueItems":1})",
                             R"({"enum":1})",
                             R"({"$defs":{"a":3}})",
                             R"({"pattern":"\\C"})"}) {
    EXPECT_TRUE(Refusal(schema).starts_with("json_schema.invalid the schema, at #")) << schema;
  }
}

TEST(Schema, BoundsWhatItCompiles) {
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += R"({"not":)";
  deep += "true" + std::string(300, '}');
  EXPECT_TRUE(Refusal(deep).starts_with("json_schema.too_large "));
  std::string wide = R"({"anyOf":[true)";
  for (int i = 0; i < 20000; ++i) wide += ",true";
  EXPECT_TRUE(Refusal(wide + "]}").starts_with("json_schema.too_large "));
}

TEST(Schema, BoundsWhatItReports) {
  std::string items = "[1";
  for (int i = 0; i < 99; ++i) items += ",1";
  const auto verdict = Compiled(R"({"items":{"type":"string"}})").Check(Parse(items + "]"));
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->violations.size(), 20u);
  EXPECT_EQ(verdict->more, 80u);
}

TEST(Schema, FindsEqualItemsQuickly) {
  std::string items = "[0";
  for (int i = 1; i < 20000; ++i) items += "," + std::to_string(i);
  EXPECT_EQ(Check(R"({"uniqueItems":true})", items + "]"), "");
  EXPECT_EQ(Check(R"({"uniqueItems":true})", items + ",19999.0]"),
            "$: must have no two equal items; items 19999 and 20000 are");
  EXPECT_EQ(Check(R"({"uniqueItems":true})", R"([{"a":1,"b":2},{"b":2.0,"a":1}])"),
            "$: must have no two equal items; items 0 and 1 are");
}

TEST(Schema, NamesTheBranchOfACondition) {
  const std::string schema = R"({"if":{"properties":{"kind":{"const":"a"}},"required":["kind"]},
      "then":{"required":["x"]},"else":{"required":["y"]}})";
  EXPECT_EQ(Check(schema, R"({"kind":"a"})"), "$.x: is required");
  EXPECT_EQ(Check(schema, R"({"kind":"b"})"), "$.y: is required");
}

TEST(Schema, LetsNothingThroughUnderAdditionalPropertiesFalse) {
  EXPECT_EQ(Check(R"({"properties":{"b":{},"a":{}},"patternProperties":{"^x":{}},
                    "additionalProperties":false})",
                  R"({"a":1,"x1":2,"c":3})"),
            R"($.c: is no property of this object; it has "a", "b")");
}

TEST(ExactNumber, OrdersAllNumbers) {
  const char* ascending[] = {"-1e300",  "-12345678901234567890123",
                             "-2",      "-1.5",
                             "-1e-300", "0",
                             "1e-300",  "0.1",
                             "1",       "1.5",
                             "10",      "12345678901234567890123",
                             "1e300"};
  for (const char* a : ascending) {
    for (const char* b : ascending) {
      const auto expected = std::find(std::begin(ascending), std::end(ascending), a) <=>
                            std::find(std::begin(ascending), std::end(ascending), b);
      EXPECT_EQ(ExactNumber::Of(Parse(a)) <=> ExactNumber::Of(Parse(b)), expected) << a << " " << b;
    }
  }
}

TEST(Same, HashesEqualValuesAlike) {
  std::int64_t steps = 1000;
  const Value a = Parse(R"({"n":[1,2.50,1e2],"m":null})");
  const Value b = Parse(R"({"m":null,"n":[1.0,2.5,100]})");
  EXPECT_TRUE(Same(a, b, steps));
  EXPECT_EQ(SameHash(a, steps), SameHash(b, steps));
  EXPECT_FALSE(Same(Parse("[1]"), Parse("[true]"), steps));
}

TEST(Pattern, KnowsUnicodeAndTheVeryEnd) {
  const auto matches = [](std::string_view pattern, std::string_view text) {
    return Pattern::Compile(pattern).value().Matches(text).value();
  };
  EXPECT_TRUE(matches("^\\w+$", "größe"));
  EXPECT_TRUE(matches("^\\u0041$", "A"));
  EXPECT_TRUE(matches("^.$", "😀"));
  EXPECT_FALSE(matches("^a$", "a\n"));
  EXPECT_TRUE(matches("b", "abc"));
}

}  // namespace
}  // namespace caisson::json
