// SPDX-License-Identifier: Apache-2.0
#include "block/request.h"

#include <gtest/gtest.h>

#include <string>

#include "json/reader.h"

namespace caisson::block {
namespace {

RunRequest RunOf(std::string_view line) {
  auto request = ReadRequest(line, {});
  EXPECT_TRUE(request) << (request ? "" : request.error().status.message);
  return request ? std::get<RunRequest>(*request) : RunRequest{};
}

// "code path id op: message"
std::string ErrorOf(std::string_view line) {
  auto request = ReadRequest(line, {});
  if (request) return "accepted";
  const RequestError& error = request.error();
  return std::string(error.status.code.name) + " " + error.path + " " + error.id + " " + error.op +
         ": " + error.status.message;
}

std::string PathOf(std::string_view members) {
  auto request =
      ReadRequest(R"({"id":"r","op":"run","script":"",)" + std::string(members) + "}", {});
  if (request) return "accepted";
  EXPECT_EQ(request.error().id, "r");
  EXPECT_EQ(request.error().op, "run");
  return request.error().path;
}

TEST(Request, FillsInDefaults) {
  const RunRequest run = RunOf(R"({"id":"r1","op":"run","script":"x = 1"})");
  EXPECT_EQ(run.id, "r1");
  EXPECT_EQ(run.job.source, "x = 1");
  EXPECT_EQ(run.job.entry, isolate::ScriptEntry::kBlock);
  EXPECT_EQ(run.job.inputs,
            R"({"user":{},"documents":[],"artifacts":[],"sources":[],"tables":{}})");
  EXPECT_EQ(run.job.options, "{}");
  EXPECT_EQ(run.job.limits, isolate::ScriptLimits{});
  EXPECT_TRUE(run.debug);
  EXPECT_FALSE(run.credit);
}

TEST(Request, PassesInputsOnAsTheyWereSent) {
  const RunRequest run = RunOf(
      R"({"op":"run","documents":[ {"b":1.10,"a":12345678901234567890} , {}],"user":{"did":"x"},)"
      R"("id":"r1","artifacts":[1,[2]],"sources":[{}],"script":"",)"
      R"("tables":{"f":{"rows":[{"a":"1"}],"columnKeys":["a"]}}})");
  EXPECT_EQ(run.job.inputs,
            R"({"user":{"did":"x"},"documents":[ {"b":1.10,"a":12345678901234567890} , {}],)"
            R"("artifacts":[1,[2]],"sources":[{}],)"
            R"("tables":{"f":{"rows":[{"a":"1"}],"columnKeys":["a"]}}})");
}

TEST(Request, ReadsEveryOtherMember) {
  const RunRequest run =
      RunOf(R"({"id":"r","op":"run","script":"\ud83d\ude00","runtime":"auto","debug":false,)"
            R"("credit":0,"options":{"geometry":"wkt"},"limits":{"wall_ms":5,"memory_bytes":6,)"
            R"("cpu_ms":7,"output_bytes":8,"messages":9,"stream_bytes":10,"disk_bytes":11,)"
            R"("pids":12}})");
  EXPECT_EQ(run.job.source, "\xf0\x9f\x98\x80");
  EXPECT_EQ(run.runtime, "auto");
  EXPECT_FALSE(run.debug);
  EXPECT_EQ(run.credit, 0U);
  EXPECT_EQ(run.job.options, R"({"geometry":"wkt"})");
  const isolate::ScriptLimits& limits = run.job.limits;
  EXPECT_EQ(limits.wall_clock.count(), 5);
  EXPECT_EQ(limits.memory_bytes, 6U);
  EXPECT_EQ(limits.cpu.count(), 7);
  EXPECT_EQ(limits.output_bytes, 8U);
  EXPECT_EQ(limits.messages, 9U);
  EXPECT_EQ(limits.stream_bytes, 10U);
  EXPECT_EQ(limits.disk_bytes, 11U);
  EXPECT_EQ(limits.pids, 12U);
}

TEST(Request, ReadsCancelAndCredit) {
  auto cancel = ReadRequest(R"({"id":"r","op":"cancel"})", {});
  ASSERT_TRUE(cancel);
  EXPECT_EQ(std::get<CancelRequest>(*cancel).id, "r");
  auto credit = ReadRequest(R"({"op":"credit","bytes":7,"id":"r"})", {});
  ASSERT_TRUE(credit);
  EXPECT_EQ(std::get<CreditRequest>(*credit).bytes, 7U);
}

TEST(Request, RefusesWhatIsNoRequest) {
  EXPECT_EQ(ErrorOf("nonsense"),
            "block.line_syntax   : the line is no JSON: line 1, column 1: expected a value, "
            "found 'n'");
  EXPECT_EQ(ErrorOf(std::string("{\"id\":\"r\0\"}", 11)).substr(0, 17), "block.line_syntax");
  EXPECT_EQ(ErrorOf("\xff\xfe").substr(0, 17), "block.line_syntax");
  EXPECT_EQ(ErrorOf(std::string(600, '[') + std::string(600, ']')).substr(0, 17),
            "block.line_syntax");
  EXPECT_EQ(ErrorOf("[]"), "block.request   : a request must be an object");
  EXPECT_EQ(ErrorOf("7"), "block.request   : a request must be an object");
  EXPECT_EQ(ErrorOf("{}"), "block.request   : a request needs an id, a string of 1 to 128 bytes");
  EXPECT_EQ(ErrorOf(R"({"id":7,"op":"run"})"),
            "block.request $.id  run: a request needs an id, a string of 1 to 128 bytes");
  EXPECT_EQ(ErrorOf(R"({"id":"","op":"run"})").substr(0, 19), "block.request $.id ");
  EXPECT_EQ(ErrorOf(R"({"id":")" + std::string(129, 'x') + R"("})").substr(0, 19),
            "block.request $.id ");
  EXPECT_EQ(ErrorOf(R"({"id":"r"})"),
            "block.request  r : a request needs op: run, cancel or credit");
  EXPECT_EQ(ErrorOf(R"({"id":"r","op":"fly"})"),
            "block.request $.op r fly: there is no such op; it is run, cancel or credit");
  EXPECT_EQ(ErrorOf(R"({"id":"r","op":"run"})"),
            "block.request  r run: run needs script, the source text");
}

TEST(Request, RefusesUnknownAndRepeatedMembers) {
  EXPECT_EQ(PathOf(R"("scripts":1)"), "$.scripts");
  EXPECT_EQ(PathOf(R"("a b":1)"), R"($["a b"])");
  EXPECT_EQ(PathOf(R"("debug":true,"debug":true)"), "$.debug");
  EXPECT_EQ(PathOf(R"("script":"x")"), "$.script");
  EXPECT_EQ(ErrorOf(R"({"id":"r","op":"cancel","script":""})"),
            "block.request $.script r cancel: the op cancel has no such member");
  EXPECT_EQ(ErrorOf(R"({"id":"r","op":"credit"})"),
            "block.request  r credit: credit needs bytes, a whole number from 1");
  std::string many = R"({"id":"r","op":"run")";
  for (int i = 0; i < 100; ++i) many += ",\"m" + std::to_string(i) + "\":1";
  EXPECT_EQ(ErrorOf(many + "}"), "block.request  r run: a request has too many members");
}

TEST(Request, NamesThePlaceOfEveryWrongMember) {
  EXPECT_EQ(PathOf(R"("documents":{})"), "$.documents");
  EXPECT_EQ(PathOf(R"("documents":[{},[]])"), "$.documents[1]");
  EXPECT_EQ(PathOf(R"("documents":[null])"), "$.documents[0]");
  EXPECT_EQ(PathOf(R"("sources":[{},{},7])"), "$.sources[2]");
  EXPECT_EQ(PathOf(R"("user":[])"), "$.user");
  EXPECT_EQ(PathOf(R"("artifacts":{})"), "$.artifacts");
  EXPECT_EQ(PathOf(R"("tables":[])"), "$.tables");
  EXPECT_EQ(PathOf(R"("tables":{"f":[]})"), "$.tables.f");
  EXPECT_EQ(PathOf(R"("tables":{"f":{"rows":{}}})"), "$.tables.f.rows");
  EXPECT_EQ(PathOf(R"("tables":{"f":{"cells":[]}})"), "$.tables.f.cells");
  EXPECT_EQ(PathOf(R"("options":[])"), "$.options");
  EXPECT_EQ(PathOf(R"("options":{"geometry":"gml"})"), "$.options.geometry");
  EXPECT_EQ(PathOf(R"("options":{"speed":1})"), "$.options.speed");
  EXPECT_EQ(PathOf(R"("limits":7)"), "$.limits");
  EXPECT_EQ(PathOf(R"("limits":{"wall":1})"), "$.limits.wall");
  EXPECT_EQ(PathOf(R"("limits":{"wall_ms":0})"), "$.limits.wall_ms");
  EXPECT_EQ(PathOf(R"("limits":{"wall_ms":1.5})"), "$.limits.wall_ms");
  EXPECT_EQ(PathOf(R"("limits":{"messages":-1})"), "$.limits.messages");
  EXPECT_EQ(PathOf(R"("limits":{"messages":9223372036854775808})"), "$.limits.messages");
  EXPECT_EQ(PathOf(R"("runtime":7)"), "$.runtime");
  EXPECT_EQ(PathOf(R"("debug":1)"), "$.debug");
  EXPECT_EQ(PathOf(R"("credit":-1)"), "$.credit");
  EXPECT_EQ(PathOf(R"("credit":"1")"), "$.credit");
  EXPECT_EQ(ErrorOf(R"({"id":"r","op":"run","script":7})"),
            "block.request $.script r run: script must be a string");
}

TEST(Request, RefusesLimitsAboveTheMaximum) {
  EXPECT_EQ(ErrorOf(R"({"id":"r","op":"run","script":"","limits":{"wall_ms":3600001}})"),
            "block.limit_too_high $.limits.wall_ms r run: the limit wall_ms is 3600001; the "
            "operator allows at most 3600000");
  EXPECT_EQ(ErrorOf(R"({"id":"r","op":"run","script":"","limits":{"output_bytes":0}})"),
            "block.limit_too_high $.limits.output_bytes r run: the limit output_bytes is 0 (not "
            "counted); the operator allows at most 1073741824");
  EXPECT_EQ(ErrorOf(R"({"id":"r","op":"run","script":"","limits":{"cpu_ms":0}})"), "accepted");
}

TEST(Request, ChecksThePolicyItself) {
  LimitPolicy policy;
  EXPECT_TRUE(CheckPolicy(policy));
  policy.defaults.wall_clock = std::chrono::hours(2);
  EXPECT_EQ(CheckPolicy(policy).error().code.name, "block.limit_too_high");
}

TEST(Inputs, RefusesTextThatIsNoJson) {
  auto inputs = MakeInputs({.documents = "[{},"});
  ASSERT_FALSE(inputs);
  EXPECT_EQ(inputs.error().path, "$.documents");
  EXPECT_EQ(inputs.error().status.code.name, "json.syntax");
  EXPECT_FALSE(MakeInputs({.user = ""}));
  auto good = MakeInputs({.documents = " [{}]\n"});
  ASSERT_TRUE(good);
  EXPECT_TRUE(json::Read(*good));
}

}  // namespace
}  // namespace caisson::block
