// SPDX-License-Identifier: Apache-2.0
#include "isolate/worker/script_frame.h"

#include <gtest/gtest.h>

#include <string>

namespace caisson::isolate {
namespace {

std::string Body(const OutgoingFrame& frame) {
  return frame.head.substr(kFrameHeadBytes) + std::string(frame.rest);
}
std::string Body(const std::string& frame) { return frame.substr(kFrameHeadBytes); }

ScriptJob SomeJob() {
  ScriptJob job;
  job.entry = ScriptEntry::kBody;
  job.source = std::string("source\0with NUL", 15);
  job.inputs = R"({"self":{}})";
  job.options = R"({"x":1})";
  job.imports = {"numpy", "pandas"};
  job.limits = {.memory_bytes = 1,
                .wall_clock = std::chrono::milliseconds(2),
                .cpu = std::chrono::milliseconds(3),
                .output_bytes = 4,
                .messages = 5,
                .stream_bytes = 6,
                .disk_bytes = 7,
                .pids = 8};
  return job;
}

ScriptOutcome SomeOutcome() {
  ScriptOutcome outcome;
  outcome.fault = Fault::kMessages;
  outcome.error_type = "E";
  outcome.message = "m";
  outcome.line = 3;
  outcome.column = 4;
  outcome.traceback = {{1, "f"}, {2, "g"}};
  outcome.traceback_text = "t";
  outcome.exit_code = -3;
  outcome.stdout_dropped = 5;
  outcome.stderr_dropped = 6;
  outcome.late_done = 11;
  outcome.late_debug = 12;
  outcome.usage.wall = std::chrono::nanoseconds(7);
  outcome.usage.memory_bytes = 8;
  outcome.usage.output_bytes = 9;
  outcome.cpu = std::chrono::nanoseconds(10);
  return outcome;
}

TEST(ScriptFrame, AJobComesBackAsItWas) {
  const ScriptJob job = SomeJob();
  const auto back = DecodeScriptJob(Body(EncodeScriptJob(job)));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->entry, job.entry);
  EXPECT_EQ(back->source, job.source);
  EXPECT_EQ(back->inputs, job.inputs);
  EXPECT_EQ(back->options, job.options);
  EXPECT_EQ(back->imports, job.imports);
  EXPECT_EQ(back->limits, job.limits);
}

TEST(ScriptFrame, AMessageComesBackAsItWas) {
  for (const bool final : {false, true}) {
    const auto back =
        DecodeScriptMessage(Body(EncodeScriptMessage({MessageKind::kPart, final, "text"})));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->kind, MessageKind::kPart);
    EXPECT_EQ(back->final, final);
  }
}

TEST(ScriptFrame, AnEndComesBackAsItWas) {
  const ScriptOutcome outcome = SomeOutcome();
  const auto back = DecodeScriptEnd(Body(EncodeScriptEnd(outcome)));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->fault, outcome.fault);
  EXPECT_EQ(back->message, "m");
  EXPECT_EQ(back->line, 3u);
  EXPECT_EQ(back->traceback.size(), 2u);
  EXPECT_EQ(back->traceback[1].function, "g");
  EXPECT_EQ(back->exit_code, -3);
  EXPECT_EQ(back->stderr_dropped, 6u);
  EXPECT_EQ(back->late_done, 11u);
  EXPECT_EQ(back->late_debug, 12u);
  EXPECT_EQ(back->usage.output_bytes, 9u);
  EXPECT_EQ(back->cpu.count(), 10);
}

// A cut job may still be one, with shorter inputs; an end may not.
TEST(ScriptFrame, CutAndChangedBytesAreRefusedOrHarmless) {
  const std::string end = Body(EncodeScriptEnd(SomeOutcome()));
  const std::string job = Body(EncodeScriptJob(SomeJob()));
  for (std::size_t i = 0; i < end.size(); ++i) {
    EXPECT_FALSE(DecodeScriptEnd(end.substr(0, i))) << i;
  }
  EXPECT_FALSE(DecodeScriptEnd(end + "x"));
  for (const std::string& body : {end, job}) {
    for (std::size_t i = 0; i < body.size(); ++i) {
      for (const char byte : {'\0', '\x7f', '\xff'}) {
        std::string changed = body;
        changed[i] = byte;
        static_cast<void>(DecodeScriptEnd(changed));
        static_cast<void>(DecodeScriptJob(changed));
        static_cast<void>(DecodeScriptMessage(changed));
        static_cast<void>(DecodeScriptStatus(changed));
      }
    }
  }
  EXPECT_FALSE(DecodeScriptMessage(""));
  EXPECT_FALSE(DecodeScriptMessage(std::string("\0\1x", 3))) << "no such kind";
  EXPECT_FALSE(DecodeScriptMessage(std::string("\7\1x", 3))) << "no such kind";
  EXPECT_FALSE(DecodeScriptMessage(std::string("\1\2x", 3))) << "final is 0 or 1";
  std::string killed = end;
  killed[0] = static_cast<char>(static_cast<int>(Fault::kKilled) + 1);
  EXPECT_FALSE(DecodeScriptEnd(killed));
}

}  // namespace
}  // namespace caisson::isolate
