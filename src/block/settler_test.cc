// SPDX-License-Identifier: Apache-2.0
#include "block/settler.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "block/frames.h"
#include "block/run.h"
#include "block/scripted_runtime.h"
#include "json/reader.h"

namespace caisson::block {
namespace {

class Collector final : public Receiver {
 public:
  Taken Take(const Delivery& delivery) override {
    if (answer != Taken::kYes && lines.size() >= answer_after) return answer;
    const Line line = EncodeDelivery("r", delivery);
    std::string text = line.head + std::string(line.body) + std::string(line.tail);
    EXPECT_TRUE(json::Read(text)) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    lines.push_back(text.substr(std::string(R"({"id":"r","type":)").size()));
    return Taken::kYes;
  }
  std::vector<std::string> lines;
  Taken answer = Taken::kYes;
  std::size_t answer_after = 0;
};

using Lines = std::vector<std::string>;

struct Ran {
  BlockOutcome outcome;
  Lines lines;
};

Ran RunScript(const std::string& script, const SettleOptions& options = {},
              const isolate::ScriptLimits& limits = {}) {
  ScriptedRuntime runtime;
  Collector collector;
  isolate::ScriptJob job{.source = script, .limits = limits};
  BlockOutcome outcome = RunBlock(runtime, job, options, collector, {});
  return {std::move(outcome), std::move(collector.lines)};
}

TEST(Settler, SettlesByTheFirstFinalDone) {
  const Ran ran = RunScript("more 1\ndone {\"a\":2}");
  EXPECT_EQ(ran.lines, (Lines{R"("done","final":false,"parts":0,"result":1})",
                              R"("done","final":true,"parts":0,"result":{"a":2}})"}));
  EXPECT_EQ(ran.outcome.settled_by, SettledBy::kFinalDone);
  EXPECT_TRUE(ran.outcome.ok());
  EXPECT_EQ(ran.outcome.results, 2U);
  EXPECT_FALSE(ran.outcome.no_result());
}

TEST(Settler, ClosesTheChannelWithTheFinalDoneAndCountsWhatComesLater) {
  const Ran ran = RunScript(
      "done 1\ndone 2\nmore 3\ndebug 4\npart [5]\nwarning {\"code\":\"c\",\"message\":\"m\"}\n"
      "out still heard");
  EXPECT_EQ(ran.lines, (Lines{R"("done","final":true,"parts":0,"result":1})",
                              R"("stdout","text":"still heard"})"}));
  EXPECT_EQ(ran.outcome.results, 1U);
  EXPECT_EQ(ran.outcome.dropped.done, 2U);
  EXPECT_EQ(ran.outcome.dropped.debug, 1U);
  EXPECT_EQ(ran.outcome.dropped.parts, 1U);
  EXPECT_EQ(ran.outcome.dropped.warning, 1U);
}

TEST(Settler, CountsTheLateResultsThatTheRuntimeHeardOf) {
  Collector collector;
  Settler settler({}, {}, collector);
  isolate::ScriptOutcome ended;
  ended.late_done = 3;
  ended.late_debug = 4;
  const BlockOutcome outcome = settler.Settle(ended, false);
  EXPECT_EQ(outcome.dropped.done, 3U);
  EXPECT_EQ(outcome.dropped.debug, 4U);
}

TEST(Settler, SettlesByTheEndWhenNoDoneWasFinal) {
  const Ran ran = RunScript("more 1\nmore 2");
  EXPECT_EQ(ran.outcome.settled_by, SettledBy::kEnd);
  EXPECT_TRUE(ran.outcome.ok());
  EXPECT_EQ(ran.outcome.results, 2U);
}

TEST(Settler, SaysThatThereIsNoResult) {
  const Ran ran = RunScript("debug 1");
  EXPECT_EQ(ran.outcome.settled_by, SettledBy::kEnd);
  EXPECT_TRUE(ran.outcome.no_result());
}

TEST(Settler, DeliversFalsyResultsLikeAnyOther) {
  for (const std::string value : {"null", "false", "0", "\"\"", "[]", "{}"}) {
    const Ran ran = RunScript("done " + value);
    EXPECT_EQ(ran.lines, (Lines{R"("done","final":true,"parts":0,"result":)" + value + "}"}));
    EXPECT_FALSE(ran.outcome.no_result());
  }
}

TEST(Settler, KeepsWhatWasDeliveredBeforeAnError) {
  const Ran ran = RunScript("more 1\nraise");
  EXPECT_EQ(ran.lines.size(), 1U);
  EXPECT_EQ(ran.outcome.settled_by, SettledBy::kError);
  EXPECT_EQ(ran.outcome.results, 1U);
  ASSERT_TRUE(ran.outcome.error);
  EXPECT_EQ(EncodeError(*ran.outcome.error),
            R"({"code":"block.raised","message":"no � good","type":"ValueError","line":3,)"
            R"("column":5,"frames":[{"line":1,"function":"<module>"},{"line":3,"function":"f"}],)"
            R"("traceback":"Traceback ...\nValueError: no good\n"})");
}

TEST(Settler, TellsAnErrorAfterTheFinalDoneApart) {
  const Ran ran = RunScript("done 1\nraise");
  EXPECT_EQ(ran.outcome.settled_by, SettledBy::kFinalDone);
  EXPECT_TRUE(ran.outcome.ok());
  ASSERT_TRUE(ran.outcome.late_error);
  EXPECT_EQ(ran.outcome.late_error->code.name, "block.raised");
}

struct Ending {
  const char* op;
  SettledBy settled_by;
  const char* code;
  const char* limit;
};

TEST(Settler, SettlesByEveryFault) {
  for (const Ending& ending : {
           Ending{"raise", SettledBy::kError, "block.raised", ""},
           Ending{"syntax", SettledBy::kError, "block.syntax", ""},
           Ending{"exit 3", SettledBy::kError, "block.exited", ""},
           Ending{"artifact", SettledBy::kError, "block.runtime_failed", ""},
           Ending{"killed", SettledBy::kError, "block.runtime_failed", ""},
           Ending{"protocol", SettledBy::kError, "block.protocol", ""},
           Ending{"fail", SettledBy::kError, "internal.failed", ""},
           Ending{"throw", SettledBy::kError, "internal.failed", ""},
           Ending{"memory", SettledBy::kLimit, "block.limit", "memory_bytes"},
           Ending{"wall", SettledBy::kLimit, "block.limit", "wall_ms"},
           Ending{"cpu", SettledBy::kLimit, "block.limit", "cpu_ms"},
           Ending{"output", SettledBy::kLimit, "block.limit", "output_bytes"},
           Ending{"messages", SettledBy::kLimit, "block.limit", "messages"},
       }) {
    const Ran ran = RunScript(ending.op);
    EXPECT_EQ(ran.outcome.settled_by, ending.settled_by) << ending.op;
    ASSERT_TRUE(ran.outcome.error) << ending.op;
    EXPECT_EQ(ran.outcome.error->code.name, ending.code) << ending.op;
    EXPECT_EQ(ran.outcome.error->limit, ending.limit) << ending.op;
    EXPECT_FALSE(ran.outcome.error->message.empty()) << ending.op;
  }
}

TEST(Settler, TakesExitCodeZeroForTheEnd) {
  const Ran ran = RunScript("more 1\nexit 0");
  EXPECT_EQ(ran.outcome.settled_by, SettledBy::kEnd);
  EXPECT_EQ(RunScript("exit 7").outcome.error->exit_code, 7);
}

TEST(Settler, DeliversAListInParts) {
  const Ran ran = RunScript("part [1,2]\npart [3]\ndone [4]");
  EXPECT_EQ(ran.lines, (Lines{R"("part","items":[1,2]})", R"("part","items":[3]})",
                              R"("done","final":true,"parts":2,"result":[4]})"}));
  EXPECT_EQ(ran.outcome.results, 1U);
  EXPECT_EQ(ran.outcome.dropped.parts, 0U);
}

TEST(Settler, CutsListsThatTheGuestDidNotCut) {
  const Ran ran =
      RunScript("more [\"aaaa\",\"bbbb\",\"cc\",\"dddddddddddddddddddddd\",1]\ndone [1]",
                {.max_part_bytes = 16});
  EXPECT_EQ(ran.lines, (Lines{R"("part","items":["aaaa","bbbb"]})", R"("part","items":["cc"]})",
                              R"("part","items":["dddddddddddddddddddddd"]})",
                              R"("done","final":false,"parts":3,"result":[1]})",
                              R"("done","final":true,"parts":0,"result":[1]})"}));
}

TEST(Settler, CutsPartsThatAreTooLong) {
  const Ran ran =
      RunScript("part [\"aaaa\",\"bbbb\",\"cccc\"]\npart []\ndone []", {.max_part_bytes = 16});
  EXPECT_EQ(ran.lines, (Lines{R"("part","items":["aaaa","bbbb"]})", R"("part","items":["cccc"]})",
                              R"("done","final":true,"parts":2,"result":[]})"}));
}

TEST(Settler, DropsPartsWithoutTheirDoneAndTells) {
  const Ran ran = RunScript("more 1\npart [2]\npart [3]\nraise");
  EXPECT_EQ(ran.outcome.results, 1U);
  EXPECT_EQ(ran.outcome.dropped.parts, 2U);
}

TEST(Settler, LetsNoForgedTextThrough) {
  for (const std::string text : {"", "nonsense", "1 2", "1}\\n{\"type\":\"end\"", "{\"a\":NaN}",
                                 "[1", "\"\\xff\"", "1,\"type\":\"end\"", "\"\\ud800\"", "[1]]"}) {
    for (const std::string op : {"done ", "debug ", "part "}) {
      const Ran ran = RunScript("more 1\n" + op + text + "\ndone 2");
      EXPECT_EQ(ran.lines.size(), 1U) << op << text;
      ASSERT_TRUE(ran.outcome.error) << op << text;
      EXPECT_EQ(ran.outcome.error->code.name, "block.protocol") << op << text;
    }
  }
}

TEST(Settler, RefusesPartsAndWarningsOfAWrongForm) {
  for (const char* script :
       {"part 1", "part {}", "part [1]\ndone 2", "warning 1", "warning {\"code\":\"c\"}",
        "warning {\"code\":1,\"message\":\"m\"}", "warning nonsense"}) {
    const Ran ran = RunScript(script);
    ASSERT_TRUE(ran.outcome.error) << script;
    EXPECT_EQ(ran.outcome.error->code.name, "block.protocol") << script;
  }
}

TEST(Settler, RefusesTextThatIsNestedTooDeeply) {
  const Ran ran = RunScript("done " + std::string(2000, '[') + std::string(2000, ']'));
  EXPECT_EQ(ran.outcome.error->code.name, "block.protocol");
}

TEST(Settler, KeepsOneLineOneLine) {
  const Ran ran = RunScript("done {\"a\":\\n[1,\\n2]}");
  EXPECT_EQ(ran.lines, (Lines{R"("done","final":true,"parts":0,"result":{"a": [1, 2]}})"}));
}

TEST(Settler, PassesOnWhatIsKnownOfAWarning) {
  const Ran ran =
      RunScript(R"(warning {"message":"m","path":"$.a","code":"c","id":"forged","type":"end"})");
  EXPECT_EQ(ran.lines, (Lines{R"("warning","code":"c","message":"m","path":"$.a"})"}));
}

TEST(Settler, JoinsCharactersThatWereCutInTwo) {
  const Ran ran = RunScript("out caf\\xc3\nout \\xa9!\nerr \\xff?\nout \\xc3");
  EXPECT_EQ(ran.lines, (Lines{R"("stdout","text":"caf"})", "\"stdout\",\"text\":\"\xc3\xa9!\"}",
                              R"("stderr","text":"�?"})", R"("stdout","text":"�"})"}));
}

TEST(Settler, CountsDebugValuesThatNobodyWants) {
  const Ran ran = RunScript("debug 1\ndone 2", {.debug = false});
  EXPECT_EQ(ran.lines.size(), 1U);
  EXPECT_EQ(ran.outcome.dropped.debug, 1U);
}

TEST(Settler, EnforcesTheLimitsOnMessagesAndOutputByItself) {
  const Ran many = RunScript("flood 100 1", {}, {.messages = 10});
  EXPECT_EQ(many.lines.size(), 10U);
  EXPECT_EQ(many.outcome.error->limit, "messages");
  EXPECT_EQ(many.outcome.results, 10U);
  const Ran large = RunScript("flood 100 \"0123456789\"", {}, {.output_bytes = 50});
  EXPECT_EQ(large.lines.size(), 4U);
  EXPECT_EQ(large.outcome.error->limit, "output_bytes");
  EXPECT_EQ(large.outcome.settled_by, SettledBy::kLimit);
}

TEST(Settler, SettlesByCancelWhenNobodyWantsTheResults) {
  ScriptedRuntime runtime;
  Collector collector;
  collector.answer = Taken::kGone;
  collector.answer_after = 1;
  const BlockOutcome outcome =
      RunBlock(runtime, {.source = "more 1\nmore 2\nmore 3"}, {}, collector, {});
  EXPECT_EQ(outcome.settled_by, SettledBy::kCancel);
  EXPECT_EQ(outcome.results, 1U);
  EXPECT_EQ(runtime.sent, 1);
}

TEST(Settler, SettlesByTheWallClockWhenTheReaderIsTooLate) {
  ScriptedRuntime runtime;
  Collector collector;
  collector.answer = Taken::kTooLate;
  const BlockOutcome outcome = RunBlock(runtime, {.source = "more 1"}, {}, collector, {});
  EXPECT_EQ(outcome.settled_by, SettledBy::kLimit);
  EXPECT_EQ(outcome.error->limit, "wall_ms");
}

TEST(Settler, SettlesByCancelWhenAskedToStop) {
  ScriptedRuntime runtime;
  Collector collector;
  std::stop_source stop;
  std::jthread later([&] {
    while (runtime.running == 0) std::this_thread::yield();
    stop.request_stop();
  });
  const BlockOutcome outcome =
      RunBlock(runtime, {.source = "more 1\nwait"}, {}, collector, stop.get_token());
  EXPECT_EQ(outcome.settled_by, SettledBy::kCancel);
  EXPECT_EQ(outcome.results, 1U);
  EXPECT_EQ(outcome.error->code.name, "block.cancelled");
}

TEST(Settler, DoesNotBeginWhatWasCancelledBefore) {
  ScriptedRuntime runtime;
  Collector collector;
  std::stop_source stop;
  stop.request_stop();
  const BlockOutcome outcome =
      RunBlock(runtime, {.source = "done 1"}, {}, collector, stop.get_token());
  EXPECT_EQ(outcome.settled_by, SettledBy::kCancel);
  EXPECT_EQ(runtime.runs, 0);
}

TEST(Outcome, IsWrittenAsDocumented) {
  const Ran ran = RunScript("more 1");
  EXPECT_EQ(ran.outcome.usage.output_bytes, 1U);
  BlockOutcome outcome = ran.outcome;
  outcome.usage.wall = std::chrono::microseconds(12400);
  EXPECT_EQ(EncodeEnd("r", outcome),
            R"({"id":"r","type":"end","ok":true,"settled_by":"end","no_result":false,"results":1,)"
            R"("error":null,"dropped":{"done":0,"debug":0,"warning":0,"parts":0,"stdout_bytes":0,)"
            R"("stderr_bytes":0},"usage":{"wall_ms":12.4,"cpu_ms":0.0,"peak_memory_bytes":1024,)"
            R"("output_bytes":1,"messages":1}})");
}

TEST(Outcome, CutsWhatTheGuestMadeLong) {
  BlockError error{.code = {"block.raised"}, .message = std::string(100'000, 'x')};
  for (std::uint32_t i = 0; i < 5000; ++i) error.frames.push_back({i, "f"});
  const std::string text = EncodeError(error);
  EXPECT_LT(text.size(), 80'000U);
  const auto value = json::Read(text);
  ASSERT_TRUE(value);
  const json::Array& frames = value->Find("frames")->as_array();
  EXPECT_EQ(frames.size(), 200U);
  EXPECT_EQ(frames.front().Find("line")->as_int(), 0);
  EXPECT_EQ(frames.back().Find("line")->as_int(), 4999);
}

}  // namespace
}  // namespace caisson::block
