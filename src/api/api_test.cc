// SPDX-License-Identifier: Apache-2.0
// The parts of the API that need no server; tests/clients has the rest.
#include <gtest/gtest.h>

#include "api/envelope.h"
#include "api/fields.h"
#include "api/ingress.h"
#include "api/metrics.h"
#include "api/tenant_slots.h"
#include "api/text.h"
#include "control/request_check.h"
#include "errors/api.h"
#include "errors/control.h"
#include "errors/http.h"
#include "json/reader.h"

namespace caisson::api {
namespace {

TEST(Text, TimesHaveThreeDigits) {
  EXPECT_EQ(Timestamp(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(Timestamp(1'700'000'000'007), "2023-11-14T22:13:20.007Z");
}

TEST(Text, BytesThatAreNoTextBecomeMarks) {
  EXPECT_EQ(ValidUtf8("a\xff"
                      "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(ValidUtf8("\xe2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(ValidUtf8("h\xc3\xa9"), "h\xc3\xa9");
  EXPECT_EQ(ValidUtf8("\xed\xa0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate
}

TEST(Text, PiecesNeverSplitACharacter) {
  const std::string text = "a\xe2\x82\xac\xf0\x9f\x98\x80z";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Utf8Pieces pieces;
    std::string out;
    for (const std::string& piece : {text.substr(0, cut), text.substr(cut)}) {
      const std::string taken = pieces.Take(piece);
      EXPECT_EQ(ValidUtf8(taken), taken);
      out += taken;
    }
    EXPECT_EQ(out + pieces.Finish(), text) << cut;
  }
  Utf8Pieces pieces;
  EXPECT_EQ(pieces.Take("\xe2"), "");
  EXPECT_EQ(pieces.Take("\xff"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // decided at once
  EXPECT_EQ(pieces.Take("\xf0\x9f"), "");
  EXPECT_EQ(pieces.Finish(), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Text, Base64IsStrict) {
  for (const std::string bytes : {"", "f", "fo", "foo", "foob", "\xff\x01\x7f"}) {
    EXPECT_EQ(FromBase64(Base64(bytes)), bytes);
  }
  EXPECT_EQ(Base64("fo"), "Zm8=");
  for (const char* bad :
       {"Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "Zm 8", "Zm8=Zm8=", "_m8="}) {
    EXPECT_FALSE(FromBase64(bad)) << bad;
  }
}

json::Value BodyOf(const Status& status) {
  return json::Read(AnswerOf(status, nullptr).body).value();
}

TEST(Envelope, TellsFaultsOfTheCallerFromOurs) {
  const auto answer = AnswerOf({.code = errors::kControlNotFound, .message = "no"}, nullptr);
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.body, R"({"status":"fail","data":"no"})");
  EXPECT_EQ(*answer.headers.Find("Content-Type"), "application/json");
  EXPECT_EQ(*answer.headers.Find("X-Error-Code"), "control.not_found");
  EXPECT_EQ(answer.headers.Find("Retry-After"), nullptr);
  EXPECT_EQ(
      BodyOf({.code = errors::kControlUnknownShape, .message = "no", .details = "shape"}),
      json::Read(R"({"status":"fail","data":{"shape":"no","code":"control.unknown_shape"}})"));
  const auto full = AnswerOf({.code = errors::kControlFull, .message = "full"}, nullptr);
  EXPECT_EQ(full.status, 503);
  EXPECT_NE(full.headers.Find("Retry-After"), nullptr);
  EXPECT_EQ(BodyOf({.code = errors::kControlFull, .message = "full"}),
            json::Read(R"({"status":"error","message":"full","code":503,)"
                       R"("error_code":"control.full"})"));
}

TEST(Envelope, SaysWhichMethodsThereAre) {
  const auto answer = AnswerOf(
      {.code = errors::kHttpMethodNotAllowed, .message = "no", .details = "GET, HEAD"}, nullptr);
  EXPECT_EQ(answer.status, 405);
  EXPECT_EQ(*answer.headers.Find("Allow"), "GET, HEAD");
}

TEST(Envelope, CutsPages) {
  json::Array all{1, 2, 3, 4, 5};
  EXPECT_EQ(CutPage(all, {.limit = 2, .offset = 4}),
            json::Read(R"({"data":[5],"pagination":{"total":5,"limit":2,"offset":4,"count":1}})"));
  EXPECT_EQ(CutPage(all, {.limit = 2, .offset = 9}).Find("data")->as_array().size(), 0u);
}

TEST(Fields, RefuseWrongTypesAndNameThePlace) {
  const Fields fields(json::Read(R"({"text":1,"list":["a",2],"map":{"k":[]},"flag":"yes",
      "number":1.5,"empty":null,"inner":{"rows":"x"},"items":[{"id":1}]})")
                          .value());
  EXPECT_EQ(fields.Text("text").error().message, "$.text must be a string, not an integer");
  EXPECT_EQ(fields.Text("text").error().details, "text");
  EXPECT_EQ(fields.TextList("list").error().message, "$.list[1] must be a string, not an integer");
  EXPECT_EQ(fields.TextList("list").error().details, "list");
  EXPECT_EQ(fields.TextMap("map").error().message, "$.map.k must be a string, not a list");
  EXPECT_FALSE(fields.Boolean("flag"));
  EXPECT_FALSE(fields.Integer("number"));
  EXPECT_EQ(fields.Number("number").value(), 1.5);
  EXPECT_EQ(fields.Text("empty").value(), std::nullopt);
  EXPECT_EQ(fields.Text("absent").value(), std::nullopt);
  const auto inner = fields.Object("inner").value();
  EXPECT_EQ(inner->Integer("rows").error().details, "inner.rows");
  const auto items = fields.ObjectList("items").value();
  EXPECT_EQ(items[0].RequiredText("id").error().message,
            "$.items[0].id must be a string, not an integer");
  EXPECT_FALSE(fields.IsSet("empty"));
  EXPECT_TRUE(fields.IsSet("list"));
}

TEST(Ingress, ReadsHostNames) {
  const auto host = ParseIngressHost("SB-01abc-8080.Preview.example:443", "preview.example");
  ASSERT_TRUE(host);
  EXPECT_EQ(host->sandbox, "sb-01abc");
  EXPECT_EQ(host->port, "8080");
  EXPECT_FALSE(ParseIngressHost("preview.example", "preview.example"));
  EXPECT_FALSE(ParseIngressHost("a.b-80.preview.example", "preview.example"));
  EXPECT_FALSE(ParseIngressHost("a-80.elsewhere.example", "preview.example"));
  EXPECT_FALSE(ParseIngressHost("a-80.", ""));
}

TEST(Slots, BoundEachTenant) {
  TenantSlots slots(2);
  const auto one = slots.Take("a");
  {
    const auto two = slots.Take("a");
    EXPECT_TRUE(two);
    EXPECT_FALSE(slots.Take("a"));
    EXPECT_TRUE(slots.Take("b"));
  }
  EXPECT_TRUE(slots.Take("a"));
}

TEST(MetricsText, IsWhatPrometheusReads) {
  Metrics metrics;
  metrics.Count("c_total", "a=\"1\"");
  metrics.Count("c_total", "a=\"1\"");
  metrics.Observe("h", "", 0.3);
  const std::string text = metrics.Text();
  EXPECT_NE(text.find("# TYPE c_total counter\nc_total{a=\"1\"} 2\n"), std::string::npos);
  EXPECT_NE(text.find("h_bucket{le=\"0.25\"} 0\nh_bucket{le=\"0.5\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("h_count 1\n"), std::string::npos);
}

}  // namespace
}  // namespace caisson::api
