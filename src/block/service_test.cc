// SPDX-License-Identifier: Apache-2.0
#include "block/service.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "block/line_reader.h"
#include "block/scripted_runtime.h"
#include "json/reader.h"
#include "json/writer.h"
#include "os/fd.h"

namespace caisson::block {
namespace {

std::string RunLine(const std::string& id, const std::string& script,
                    const std::string& more = "") {
  return R"({"id":")" + id + R"(","op":"run","script":)" + json::Quote(script) + more + "}\n";
}

// A service on two pipes, and its client.
class ServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);
    runtimes_[RuntimeId::kCpython].runtime = &runtime_;
    runtimes_[RuntimeId::kNative].reason = "not here";
    runtimes_[RuntimeId::kOci].reason = "not here";
  }
  void TearDown() override {
    if (!server_.joinable()) return;
    requests_.Reset();
    answers_.Reset();
    server_.join();
  }

  void Start() {
    auto in = os::MakePipe();
    auto out = os::MakePipe();
    auto never = os::MakeEventFd();
    ASSERT_TRUE(in && out && never);
    requests_ = std::move(in->second);
    answers_ = std::move(out->first);
    never_ = *std::move(never);
    reader_ = std::make_unique<LineReader>(answers_.get(), never_.get(), std::size_t{1} << 30);
    server_in_ = std::move(in->first);
    server_out_ = std::move(out->second);
    server_ = std::thread([this] {
      RunQueue queue(caps_);
      Service service(runtimes_, options_, queue);
      const auto served = service.Serve(server_in_.get(), server_out_.get(), stop_.get_token());
      EXPECT_TRUE(served);
      write_error_ = served.value_or(-1);
      server_in_.Reset();
      server_out_.Reset();
    });
  }

  void Send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t count = write(requests_.get(), text.data(), text.size());
      ASSERT_GT(count, 0);
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  // The next answer; an empty text at the end of the stream.
  std::string NextText() {
    std::string_view line;
    return reader_->Next(line) == LineReader::Event::kLine ? std::string(line) : "";
  }
  json::Value Next() {
    const std::string text = NextText();
    auto value = json::Read(text);
    EXPECT_TRUE(value) << "'" << text << "'";
    return value ? *value : json::Value();
  }
  static std::string Text(const json::Value& frame, const char* key) {
    const json::Value* value = frame.Find(key);
    return value != nullptr && value->is_string() ? value->as_string() : "";
  }
  json::Value NextOf(const std::string& type) {
    json::Value frame = Next();
    EXPECT_EQ(Text(frame, "type"), type) << *json::Write(frame);
    return frame;
  }
  // Reads up to the end frame of `id`, which it gives.
  json::Value End(const std::string& id) {
    while (true) {
      const std::string text = NextText();
      if (text.empty()) {
        ADD_FAILURE() << "the stream ended before the end of " << id;
        return {};
      }
      json::Value frame = *json::Read(text);
      if (Text(frame, "type") == "end" && Text(frame, "id") == id) return frame;
    }
  }
  void EndInput() {
    requests_.Reset();
    EXPECT_EQ(NextText(), "");
    server_.join();
    EXPECT_EQ(write_error_, 0);
  }
  void WaitUntil(const std::function<bool()>& condition) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  ScriptedRuntime runtime_;
  RuntimeSet runtimes_;
  ServiceOptions options_{.version = "1.2.3"};
  RunQueue::Caps caps_{.runs = 4};
  std::stop_source stop_;
  os::UniqueFd requests_;
  os::UniqueFd answers_;
  os::UniqueFd never_;
  os::UniqueFd server_in_;
  os::UniqueFd server_out_;
  std::unique_ptr<LineReader> reader_;
  int write_error_ = -1;  // once the server has ended
  std::thread server_;
};

TEST_F(ServiceTest, BeginsWithHello) {
  Start();
  const json::Value hello = NextOf("hello");
  EXPECT_EQ(hello.Find("protocol")->as_int(), 1);
  EXPECT_EQ(Text(hello, "version"), "1.2.3");
  EXPECT_EQ(Text(hello, "default_runtime"), "cpython");
  EXPECT_EQ(hello.Find("runtimes")->as_array()[1].Find("reason")->as_string(), "not here");
  EXPECT_EQ(hello.Find("limits")->Find("default")->Find("wall_ms")->as_int(), 120'000);
  EndInput();
}

TEST_F(ServiceTest, AnswersARunWithAcceptedFramesAndOneEnd) {
  Start();
  NextOf("hello");
  Send(RunLine("r", "more 1\ndebug 2\nout x\ndone 3"));
  EXPECT_EQ(NextText(), R"({"id":"r","type":"accepted","runtime":"cpython"})");
  EXPECT_EQ(NextText(), R"({"id":"r","type":"done","final":false,"parts":0,"result":1})");
  EXPECT_EQ(NextText(), R"({"id":"r","type":"debug","result":2})");
  EXPECT_EQ(NextText(), R"({"id":"r","type":"stdout","text":"x"})");
  EXPECT_EQ(NextText(), R"({"id":"r","type":"done","final":true,"parts":0,"result":3})");
  EXPECT_EQ(Text(NextOf("end"), "settled_by"), "final_done");
  EndInput();
}

TEST_F(ServiceTest, HandsTheInputsToTheScript) {
  Start();
  NextOf("hello");
  Send(RunLine("r", "inputs", R"(,"documents":[{"a":1e2}],"user":{"did":"x"})"));
  NextOf("accepted");
  EXPECT_EQ(NextText(),
            R"({"id":"r","type":"done","final":false,"parts":0,"result":{"user":{"did":"x"},)"
            R"("documents":[{"a":1e2}],"artifacts":[],"sources":[],"tables":{}}})");
  NextOf("end");
  EndInput();
}

TEST_F(ServiceTest, AnswersHostileLinesAndGoesOn) {
  options_.max_line_bytes = 1 << 20;
  Start();
  NextOf("hello");
  const auto error_of = [&](std::string_view line) {
    Send(line);
    Send("\n");
    const json::Value frame = NextOf("error");
    return Text(*frame.Find("error"), "code") + " " + std::to_string(frame.Find("line")->as_int());
  };
  EXPECT_EQ(error_of(std::string(10u << 20, 'x')), "block.line_too_long 1");
  EXPECT_EQ(error_of("\x7f\x45LF\x01\x02\xff\xfe"), "block.line_syntax 2");
  EXPECT_EQ(error_of(std::string(100'000, '[')), "block.line_syntax 3");
  EXPECT_EQ(error_of(std::string("{\"id\":\"\xff\"}")), "block.line_syntax 4");
  EXPECT_EQ(error_of(std::string("\0\0\0", 3)), "block.line_syntax 5");
  EXPECT_EQ(error_of(R"({"id":"r","op":"run","script":"","speed":1})"), "block.request 6");
  Send("\n  \r\n");
  EXPECT_EQ(error_of(R"({"id":"r","op":"fly"})"), "block.request 9");
  Send(RunLine("r", "done 1"));
  NextOf("accepted");
  EXPECT_EQ(Text(End("r"), "settled_by"), "final_done");
  EndInput();
}

TEST_F(ServiceTest, DoesNotHoldALineThatIsTooLong) {
  options_.max_line_bytes = 1 << 20;
  Start();
  NextOf("hello");
  const std::string block(1u << 20, 'x');
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  for (int i = 0; i < 256; ++i) Send(block);
  Send("\n");
  NextOf("error");
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 * 1024);  // KiB, of 256 MiB sent
  EndInput();
}

TEST_F(ServiceTest, TakesALastLineWithoutALineEnd) {
  Start();
  NextOf("hello");
  std::string line = RunLine("r", "done 1");
  line.pop_back();
  Send(line);
  requests_.Reset();
  NextOf("accepted");
  EXPECT_EQ(Text(End("r"), "settled_by"), "final_done");
  EXPECT_EQ(NextText(), "");
  server_.join();
}

TEST_F(ServiceTest, CarriesOutManyRunsAtOnce) {
  caps_ = {.runs = 8, .waiting = 1000};
  Start();
  NextOf("hello");
  constexpr int kRuns = 200;
  std::thread sender([&] {
    for (int i = 0; i < kRuns; ++i) {
      Send(RunLine("r" + std::to_string(i), "flood 20 " + std::to_string(i) + "\ndone [1,2]"));
    }
  });
  std::map<std::string, int> accepted;
  std::map<std::string, int> results;
  std::map<std::string, int> ends;
  while (static_cast<int>(ends.size()) < kRuns) {
    const json::Value frame = Next();
    const std::string id = Text(frame, "id");
    const std::string type = Text(frame, "type");
    ASSERT_FALSE(ends.contains(id)) << "a frame after the end";
    if (type == "accepted") ++accepted[id];
    if (type == "done") {
      ASSERT_EQ(accepted[id], 1);
      if (++results[id] <= 20) {
        EXPECT_EQ("r" + std::to_string(frame.Find("result")->as_int()), id);
      }
    }
    if (type == "end") {
      ++ends[id];
      EXPECT_EQ(frame.Find("results")->as_int(), 21);
      EXPECT_EQ(results[id], 21);
    }
  }
  sender.join();
  EndInput();
}

TEST_F(ServiceTest, RefusesAnIdThatIsInUseAndTakesItAgainAfterwards) {
  Start();
  NextOf("hello");
  Send(RunLine("r", "wait"));
  NextOf("accepted");
  Send(RunLine("r", "done 1"));
  const json::Value error = NextOf("error");
  EXPECT_EQ(Text(*error.Find("error"), "code"), "block.duplicate_id");
  EXPECT_EQ(Text(error, "id"), "r");
  EXPECT_EQ(Text(error, "op"), "run");
  Send(R"({"id":"r","op":"cancel"})"
       "\n");
  EXPECT_EQ(Text(End("r"), "settled_by"), "cancel");
  Send(RunLine("r", "done 1"));
  NextOf("accepted");
  EXPECT_EQ(Text(End("r"), "settled_by"), "final_done");
  EndInput();
}

TEST_F(ServiceTest, CancelsARunAndKeepsWhatItDelivered) {
  Start();
  NextOf("hello");
  Send(RunLine("r", "more 1\nwait"));
  NextOf("accepted");
  NextOf("done");
  Send(R"({"id":"r","op":"cancel"})"
       "\n");
  const json::Value end = NextOf("end");
  EXPECT_EQ(Text(end, "settled_by"), "cancel");
  EXPECT_EQ(end.Find("results")->as_int(), 1);
  EXPECT_EQ(Text(*end.Find("error"), "code"), "block.cancelled");
  Send(R"({"id":"r","op":"cancel"})"
       "\n");
  EXPECT_EQ(Text(*NextOf("error").Find("error"), "code"), "block.unknown_run");
  EndInput();
}

TEST_F(ServiceTest, CancelsARunThatWaitsAtOnce) {
  caps_ = {.runs = 1, .waiting = 8};
  Start();
  NextOf("hello");
  Send(RunLine("first", "wait"));
  NextOf("accepted");
  WaitUntil([this] { return runtime_.running == 1; });
  Send(RunLine("second", "done 1"));
  NextOf("accepted");
  Send(R"({"id":"second","op":"cancel"})"
       "\n");
  const json::Value end = NextOf("end");
  EXPECT_EQ(Text(end, "id"), "second");
  EXPECT_EQ(Text(end, "settled_by"), "cancel");
  Send(R"({"id":"first","op":"cancel"})"
       "\n");
  End("first");
  EndInput();
  EXPECT_EQ(runtime_.runs, 1);
}

TEST_F(ServiceTest, RefusesRunsWhenTooManyWait) {
  caps_ = {.runs = 1, .waiting = 2};
  Start();
  NextOf("hello");
  Send(RunLine("r0", "wait"));
  NextOf("accepted");
  WaitUntil([this] { return runtime_.running == 1; });
  for (const char* id : {"r1", "r2"}) {
    Send(RunLine(id, "wait"));
    NextOf("accepted");
  }
  Send(RunLine("r3", "wait"));
  EXPECT_EQ(Text(*NextOf("error").Find("error"), "code"), "block.busy");
  stop_.request_stop();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Text(NextOf("end"), "settled_by"), "cancel");
  EXPECT_EQ(NextText(), "");
  server_.join();
}

TEST_F(ServiceTest, RefusesRunsWhoseTextsDoNotFit) {
  caps_ = {.runs = 1, .waiting = 100, .waiting_bytes = 1000};
  Start();
  NextOf("hello");
  Send(RunLine("r0", "wait"));
  NextOf("accepted");
  WaitUntil([this] { return runtime_.running == 1; });
  const std::string user = R"(,"user":{"a":")" + std::string(2000, 'x') + "\"}";
  Send(RunLine("large", "wait", user));
  NextOf("accepted");  // one alone may be large
  Send(RunLine("larger", "wait", user));
  EXPECT_EQ(Text(*NextOf("error").Find("error"), "code"), "block.busy");
  stop_.request_stop();
  End("r0");
}

TEST_F(ServiceTest, StopsTheScriptWhenNobodyReads) {
  Start();
  NextOf("hello");
  const std::string text = "\"" + std::string(1000, 'x') + "\"";
  Send(RunLine("r", "flood 100000 " + text));
  int before = -1;
  WaitUntil([&] {  // until nothing moves any more
    const int now = runtime_.sent;
    const bool still = now == before && now > 0;
    before = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return still;
  });
  EXPECT_LT(runtime_.sent, 2000);  // of 100 MB not even two
  const json::Value end = End("r");
  EXPECT_EQ(end.Find("results")->as_int(), 100'000);
  EndInput();
}

TEST_F(ServiceTest, EndsARunWhoseReaderIsTooLate) {
  Start();
  NextOf("hello");
  Send(RunLine("r", "flood 100000 \"" + std::string(1000, 'x') + "\"",
               R"(,"limits":{"wall_ms":50})"));
  WaitUntil([this] { return runtime_.runs == 1 && runtime_.running == 0; });
  EXPECT_LT(runtime_.sent, 2000);
  const json::Value end = End("r");
  EXPECT_EQ(Text(end, "settled_by"), "limit");
  EXPECT_EQ(Text(*end.Find("error"), "limit"), "wall_ms");
  EndInput();
}

TEST_F(ServiceTest, FinishesALineThatHasBegunWhenTheRunIsCancelled) {
  options_.max_part_bytes = 1u << 30;
  Start();
  NextOf("hello");
  Send(RunLine("r", "done {\"a\":\"" + std::string(4u << 20, 'x') + "\"}\nwait"));
  NextOf("accepted");
  WaitUntil([this] { return runtime_.running == 1; });
  Send(R"({"id":"r","op":"cancel"})"
       "\n");
  WaitUntil([this] { return runtime_.running == 0; });
  EXPECT_EQ(NextOf("done").Find("result")->Find("a")->as_string().size(), 4u << 20);
  NextOf("end");
  EndInput();
}

TEST_F(ServiceTest, LetsNoRunSendMoreThanItsCredit) {
  Start();
  NextOf("hello");
  Send(RunLine("r", "flood 10 \"" + std::string(100, 'x') + "\"", R"(,"credit":200)"));
  NextOf("accepted");
  NextOf("done");  // 162 bytes of 200
  NextOf("done");  // overdraws
  WaitUntil([this] { return runtime_.sent == 2; });
  Send(RunLine("other", "done 1"));
  NextOf("accepted");
  EXPECT_EQ(Text(End("other"), "settled_by"), "final_done");
  EXPECT_EQ(runtime_.sent, 3);
  Send(R"({"id":"r","op":"credit","bytes":300})"
       "\n");
  NextOf("done");
  Send(R"({"id":"r","op":"credit","bytes":1000000})"
       "\n");
  EXPECT_EQ(End("r").Find("results")->as_int(), 10);
  EndInput();
}

TEST_F(ServiceTest, RefusesCreditForARunWithoutAWindow) {
  Start();
  NextOf("hello");
  Send(RunLine("r", "wait"));
  NextOf("accepted");
  Send(R"({"id":"r","op":"credit","bytes":1})"
       "\n");
  EXPECT_EQ(Text(*NextOf("error").Find("error"), "code"), "block.request");
  Send(R"({"id":"r","op":"cancel"})"
       "\n");
  End("r");
  EndInput();
}

TEST_F(ServiceTest, FinishesAcceptedRunsAtTheEndOfInputAndAsksForNoCredit) {
  Start();
  NextOf("hello");
  Send(RunLine("r", "flood 10 1\ndone 2", R"(,"credit":0)"));
  requests_.Reset();
  NextOf("accepted");
  const json::Value end = End("r");
  EXPECT_EQ(Text(end, "settled_by"), "final_done");
  EXPECT_EQ(end.Find("results")->as_int(), 11);
  EXPECT_EQ(NextText(), "");
  server_.join();
}

TEST_F(ServiceTest, CancelsRunsWhoseReaderHasGone) {
  Start();
  NextOf("hello");
  Send(RunLine("silent", "wait"));
  NextOf("accepted");
  WaitUntil([this] { return runtime_.running == 1; });
  answers_.Reset();
  requests_.Reset();
  server_.join();
  EXPECT_EQ(runtime_.running, 0);
  EXPECT_EQ(write_error_, EPIPE);
}

TEST_F(ServiceTest, CancelsRunsThatWriteToNobody) {
  Start();
  NextOf("hello");
  answers_.Reset();
  Send(RunLine("r", "flood 100000 1\nwait"));
  server_.join();  // although the input has not ended
  EXPECT_EQ(runtime_.running, 0);
  EXPECT_EQ(write_error_, EPIPE);
}

TEST_F(ServiceTest, CancelsAllRunsWhenAskedToStop) {
  Start();
  NextOf("hello");
  for (int i = 0; i < 3; ++i) {
    Send(RunLine("r" + std::to_string(i), "wait"));
    NextOf("accepted");
  }
  stop_.request_stop();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Text(NextOf("end"), "settled_by"), "cancel");
  EXPECT_EQ(NextText(), "");
  server_.join();
}

TEST_F(ServiceTest, EndsWithinItsGraceWhenNobodyReads) {
  options_.grace = std::chrono::milliseconds(20);
  Start();
  NextOf("hello");
  Send(RunLine("r", "flood 100000 \"" + std::string(1000, 'x') + "\""));
  WaitUntil([this] { return runtime_.sent > 10; });
  stop_.request_stop();
  server_.join();
  EXPECT_EQ(write_error_, ETIMEDOUT);
}

TEST_F(ServiceTest, RefusesRuntimesAndLibrariesThatAreNotThere) {
  Start();
  NextOf("hello");
  const auto code_of = [&](const std::string& line) {
    Send(line);
    const json::Value frame = NextOf("error");
    return Text(*frame.Find("error"), "code") + " " + Text(*frame.Find("error"), "path");
  };
  EXPECT_EQ(code_of(RunLine("r", "x = 1", R"(,"runtime":"oci")")),
            "block.runtime_unavailable $.runtime");
  EXPECT_EQ(code_of(RunLine("r", "x = 1", R"(,"runtime":"auto")")),
            "block.runtime_unavailable $.runtime");
  EXPECT_EQ(code_of(RunLine("r", "x = 1", R"(,"runtime":"jvm")")), "block.request $.runtime");
  EXPECT_EQ(code_of(RunLine("r", "import rasterio")), "block.library_unavailable $.script");
  EXPECT_EQ(code_of(RunLine("r", "import js")), "block.import_refused $.script");
  EndInput();
}

TEST_F(ServiceTest, SpeaksOnOneSocketWithManyClientsOfTheQueue) {
  RunQueue queue({.runs = 2});
  Service service(runtimes_, options_, queue);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      auto pair = os::MakeSocketPair(1 << 16);
      ASSERT_TRUE(pair);
      os::UniqueFd client = std::move(pair->second);
      std::thread served([&, server = std::move(pair->first)] {
        EXPECT_TRUE(service.Serve(server.get(), server.get(), {}));
      });
      const std::string request = RunLine("same", "more 1\ndone 2");
      ASSERT_EQ(write(client.get(), request.data(), request.size()),
                static_cast<ssize_t>(request.size()));
      shutdown(client.get(), SHUT_WR);
      auto never = os::MakeEventFd();
      LineReader reader(client.get(), never->get(), 1 << 20);
      std::string_view line;
      std::vector<std::string> types;
      while (reader.Next(line) == LineReader::Event::kLine) {
        types.push_back(Text(*json::Read(line), "type"));
      }
      EXPECT_EQ(types, (std::vector<std::string>{"hello", "accepted", "done", "done", "end"}));
      served.join();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace caisson::block
