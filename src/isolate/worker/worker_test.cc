// SPDX-License-Identifier: Apache-2.0
// The worker runtime with an executor whose behaviour the job's source names: what a call survives,
// what it costs when it does not, and what is left behind. This program is its own worker.
#include "isolate/worker/worker.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/sanitizer.h"
#include "errors/isolate.h"
#include "errors/jail.h"
#include "errors/wasm.h"
#include "isolate/micropython/executor.h"
#include "isolate/worker/frame.h"
#include "jail/spawn.h"
#include "json/writer.h"

namespace caisson::isolate {
namespace {

using namespace std::chrono_literals;
using jail::kChannelFd;

// ---- the worker's side ----

void WriteRaw(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(kChannelFd, bytes.data(), bytes.size());
    if (n <= 0) ::_exit(9);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

// Does what the first word of the source says, with the number behind it.
class ScriptedExecutor final : public Executor {
 public:
  Result<EncodedOutcome> Execute(const EncodedJob& job) override {
    ++calls_;
    const std::size_t space = std::min(job.source.find(' '), job.source.size());
    const std::string verb = job.source.substr(0, space);
    std::uint64_t number = 0;
    std::from_chars(job.source.data() + std::min(space + 1, job.source.size()),
                    job.source.data() + job.source.size(), number);
    return Do(verb, number, job);
  }

  json::Value Describe() const override { return json::Object{{"runtime", "scripted"}}; }

 private:
  Result<EncodedOutcome> Do(const std::string& verb, std::uint64_t number, const EncodedJob& job) {
    EncodedOutcome out;
    out.value_text = job.payload;
    if (verb == "echo") return out;
    if (verb == "status") return Fail(errors::kWasmEngine, "the engine failed, as asked");
    if (verb == "sleep") std::this_thread::sleep_for(std::chrono::milliseconds(number));
    if (verb == "die") ::_exit(static_cast<int>(number));
    if (verb == "abort") std::abort();
    if (verb == "forbidden") return Forbidden();
    if (verb == "garbage") WriteRaw(std::string(64, 'g'));
    if (verb == "wrong_call") WriteRaw(Reply(job, 1'000'000));
    if (verb == "twice") WriteRaw(Reply(job, calls_));
    if (verb == "oversize") WriteRaw(Head(std::uint64_t{1} << 60));
    if (verb == "over_limit") WriteRaw(Head(MaxReplyBytes(job.limits) + 1));
    if (verb == "flood") Flood();
    if (verb == "big") out.value_text = "{\"x\":\"" + std::string(number, 'x') + "\"}";
    if (verb == "not_json") out.value_text = "{";
    if (verb == "eat") return Eat(number << 20);
    if (verb == "count") out.value_text = "{\"calls\":" + std::to_string(calls_) + "}";
    if (verb == "raise") Raise(out);
    return out;
  }

  static Result<EncodedOutcome> Forbidden() {
    (void)!::access("/", R_OK);
    return EncodedOutcome{.outcome = {}, .value_text = "{}"};
  }
  static void Raise(EncodedOutcome& out) {
    out.value_text.clear();
    out.outcome.fault = Fault::kRaised;
    out.outcome.error_type = "ValueError";
    out.outcome.message = "bad \xff value";
    out.outcome.traceback = {{3, "run"}, {1, "helper"}};
    out.outcome.stdout_text = "printed";
    out.outcome.stdout_dropped = 7;
    out.outcome.usage = {.wall = 5ns, .fuel = 6, .memory_bytes = 7, .output_bytes = 8};
  }
  static std::string Head(std::uint64_t length) {
    std::string head = EncodeForgetSources();  // right magic
    head[4] = static_cast<char>(FrameType::kOutcome);
    for (unsigned i = 0; i < 8; ++i) head[8 + i] = static_cast<char>(length >> (8 * i));
    return head;
  }
  static std::string Reply(const EncodedJob& job, std::uint64_t call) {
    const Result<EncodedOutcome> result = EncodedOutcome{.outcome = {}, .value_text = job.payload};
    const OutgoingFrame frame = EncodeReply(call, result);
    return frame.head + std::string(frame.rest);
  }
  [[noreturn]] static void Flood() {
    const std::string block(1u << 16, '\0');
    for (;;) WriteRaw(block);
  }
  static Result<EncodedOutcome> Eat(std::uint64_t bytes) {
    std::vector<char> block(bytes, 'x');
    return EncodedOutcome{.outcome = {}, .value_text = block[bytes / 2] == 'x' ? "{}" : "[]"};
  }

  std::uint64_t calls_ = 0;
};

Result<std::unique_ptr<Executor>> MakeExecutor(const WorkerCommand& command) {
  const std::string how = command.arguments.empty() ? "" : command.arguments[0];
  if (how == "fail") return Fail(errors::kWasmArtifact, "no artifact, as asked");
  if (how == "die") ::_exit(5);
  if (how == "hang") std::this_thread::sleep_for(1h);
  if (how == "garbage") WriteRaw(std::string(64, 'g'));
  if (how == "micropython") {
    return MicroPythonExecutor::Create({.cache_dir = CAISSON_BINARY_DIR "/test-cache",
                                        .heap_sizes = {Limits{}.heap_bytes, 1u << 20},
                                        .max_concurrent_calls = 1});
  }
  return std::make_unique<ScriptedExecutor>();
}

// ---- the test's side ----

WorkerOptions OneWorker() {
  WorkerOptions options;
  options.workers = 1;
  options.grace = 200ms;
  options.start_timeout = 20s;
  return options;
}

std::unique_ptr<WorkerRuntime> Make(WorkerOptions options = OneWorker()) {
  auto runtime = WorkerRuntime::Create(std::move(options));
  EXPECT_TRUE(runtime) << runtime.error().message;
  return runtime ? *std::move(runtime) : nullptr;
}

EncodedJob JobOf(std::string source, std::string payload = "{\"a\":1}") {
  EncodedJob job;
  job.source = std::move(source);
  job.payload = std::move(payload);
  job.limits.wall_clock = 60'000ms;  // machines that run tests are busy
  return job;
}

void ExpectEcho(WorkerRuntime& runtime, const std::string& payload = "{\"a\":1}") {
  const auto outcome = runtime.CallEncoded(JobOf("echo", payload));
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->outcome.fault, Fault::kNone) << outcome->outcome.message;
  EXPECT_EQ(outcome->value_text, payload);
}

Fault FaultOf(WorkerRuntime& runtime, EncodedJob job, std::string* message = nullptr) {
  const auto outcome = runtime.CallEncoded(std::move(job));
  EXPECT_TRUE(outcome) << outcome.error().message;
  if (!outcome) return Fault::kNone;
  if (message != nullptr) *message = outcome->outcome.message;
  return outcome->outcome.fault;
}

// Answers of Submit, to wait for.
class Answers {
 public:
  WorkerRuntime::Callback Take() {
    return [this](Result<EncodedOutcome> result) {
      const std::lock_guard lock(mutex_);
      results_.push_back(std::move(result));
      changed_.notify_all();
    };
  }
  std::vector<Result<EncodedOutcome>> Await(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 30s, [&] { return results_.size() >= count; }))
        << results_.size();
    return results_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Result<EncodedOutcome>> results_;
};

// Signals the one worker of `runtime`, and nothing else ever: kill(2) takes -1, 0 and 1 for others.
void SignalWorker(const WorkerRuntime& runtime, int signal) {
  const std::vector<int> workers = runtime.Stats().process_ids;
  ASSERT_EQ(workers.size(), 1u);
  ASSERT_GT(workers[0], 1);
  ASSERT_EQ(::kill(workers[0], signal), 0);
}

TEST(WorkerRuntime, CallsTheExecutorInAJailedProcess) {
  auto runtime = Make();
  ExpectEcho(*runtime);
  ExpectEcho(*runtime, "{\"b\":\"\xc3\xa9\"}");
  EXPECT_EQ(runtime->Stats().started, 1u);
  EXPECT_EQ(runtime->Stats().running, 1u);
  EXPECT_GT(runtime->Stats().resident_bytes, 0u);
}

TEST(WorkerRuntime, GivesValuesOnTheTypedSide) {
  auto runtime = Make();
  Job job;
  job.source = "echo";
  job.self = json::Object{};
  job.state = json::Object{{"n", 1}};
  job.config = json::Object{};
  auto outcome = runtime->Call(job);
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_TRUE(outcome->ok()) << outcome->message;
  ASSERT_NE(outcome->value.Find("state"), nullptr);
  EXPECT_EQ(*outcome->value.Find("state"), json::Value(json::Object{{"n", 1}}));
  job.source = "not_json";
  outcome = runtime->Call(job);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->fault, Fault::kProtocol);
}

TEST(WorkerRuntime, CarriesEverythingThatAnOutcomeSays) {
  auto runtime = Make();
  const auto result = runtime->CallEncoded(JobOf("raise"));
  ASSERT_TRUE(result);
  const Outcome& outcome = result->outcome;
  EXPECT_EQ(outcome.fault, Fault::kRaised);
  EXPECT_EQ(outcome.error_type, "ValueError");
  EXPECT_EQ(outcome.message, "bad \xef\xbf\xbd value");
  ASSERT_EQ(outcome.traceback.size(), 2u);
  EXPECT_EQ(outcome.traceback[0].line, 3u);
  EXPECT_EQ(outcome.traceback[1].function, "helper");
  EXPECT_EQ(outcome.stdout_text, "printed");
  EXPECT_EQ(outcome.stdout_dropped, 7u);
  EXPECT_EQ(outcome.usage.wall, 5ns);
  EXPECT_EQ(outcome.usage.fuel, 6u);
  EXPECT_EQ(outcome.usage.memory_bytes, 7u);
  EXPECT_EQ(outcome.usage.output_bytes, 8u);
}

TEST(WorkerRuntime, PassesOnAStatusOfTheExecutor) {
  auto runtime = Make();
  const auto result = runtime->CallEncoded(JobOf("status"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, errors::kWasmEngine);
  EXPECT_EQ(result.error().message, "the engine failed, as asked");
  ExpectEcho(*runtime);
  EXPECT_EQ(runtime->Stats().started, 1u);
}

TEST(WorkerRuntime, CarriesLargeTextsBothWaysAtOnce) {
  auto runtime = Make();
  Answers answers;
  const std::string payload = "{\"x\":\"" + std::string(40u << 20, 'x') + "\"}";
  for (int i = 0; i < 3; ++i) runtime->Submit(JobOf("echo", payload), answers.Take());
  for (const auto& result : answers.Await(3)) {
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->value_text.size(), payload.size()) << result->outcome.message;
  }
  ExpectEcho(*runtime);
}

TEST(WorkerRuntime, LosesOnlyTheCallDuringWhichAWorkerIsKilled) {
  auto runtime = Make();
  ExpectEcho(*runtime);
  Answers slow;
  Answers others;
  runtime->Submit(JobOf("sleep 10000"), slow.Take());
  for (int i = 0; i < 8; ++i) runtime->Submit(JobOf("echo"), others.Take());
  std::this_thread::sleep_for(100ms);
  ASSERT_NO_FATAL_FAILURE(SignalWorker(*runtime, SIGKILL));
  const auto killed = slow.Await(1);
  ASSERT_TRUE(killed[0]);
  EXPECT_EQ(killed[0]->outcome.fault, Fault::kKilled);
  EXPECT_NE(killed[0]->outcome.message.find("SIGKILL"), std::string::npos);
  for (const auto& result : others.Await(8)) {
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outcome.fault, Fault::kNone);
  }
  EXPECT_EQ(runtime->Stats().started, 2u);
}

TEST(WorkerRuntime, ServesTheNextCallAfterAnIdleWorkerWasKilled) {
  auto runtime = Make();
  for (int i = 0; i < 5; ++i) {
    ExpectEcho(*runtime);
    ASSERT_NO_FATAL_FAILURE(SignalWorker(*runtime, SIGKILL));
    std::this_thread::sleep_for(50ms);
  }
  ExpectEcho(*runtime);
}

TEST(WorkerRuntime, ReportsAWorkerThatEndsAbortsOrIsStoppedByItsJail) {
  auto runtime = Make();
  std::string message;
  EXPECT_EQ(FaultOf(*runtime, JobOf("die 3"), &message), Fault::kKilled);
  EXPECT_NE(message.find("exited with code 3"), std::string::npos) << message;
  EXPECT_EQ(FaultOf(*runtime, JobOf("abort"), &message), Fault::kKilled);
  EXPECT_EQ(FaultOf(*runtime, JobOf("forbidden"), &message), Fault::kKilled);
  EXPECT_NE(message.find("SIGSYS"), std::string::npos) << message;
  ExpectEcho(*runtime);
}

TEST(WorkerRuntime, EndsAWorkerThatBreaksTheProtocolAndServesTheNextCall) {
  auto runtime = Make();
  for (const char* source : {"garbage", "wrong_call", "oversize", "over_limit", "flood"}) {
    std::string message;
    EXPECT_EQ(FaultOf(*runtime, JobOf(source), &message), Fault::kKilled) << source;
    EXPECT_NE(message.find("protocol"), std::string::npos) << source << ": " << message;
    ExpectEcho(*runtime);
  }
}

TEST(WorkerRuntime, EndsAWorkerThatAnswersWhatItWasNotAsked) {
  auto runtime = Make();
  // The first of two replies to one call is taken; the second one ends the worker.
  (void)FaultOf(*runtime, JobOf("twice"));
  std::this_thread::sleep_for(50ms);
  (void)FaultOf(*runtime, JobOf("echo"));
  ExpectEcho(*runtime);
  EXPECT_GE(runtime->Stats().started, 2u);
}

TEST(WorkerRuntime, RefusesAResultBeyondTheOutputLimit) {
  auto runtime = Make();
  EncodedJob job = JobOf("big 2000");
  job.limits.output_bytes = 1000;
  std::string message;
  EXPECT_EQ(FaultOf(*runtime, job, &message), Fault::kKilled);
  job.limits.output_bytes = 4000;
  EXPECT_EQ(FaultOf(*runtime, job), Fault::kNone);
}

TEST(WorkerRuntime, KillsAWorkerThatDoesNotAnswerInTime) {
  auto runtime = Make();
  ExpectEcho(*runtime);
  EncodedJob job = JobOf("sleep 60000");
  job.limits.wall_clock = 100ms;
  const auto start = std::chrono::steady_clock::now();
  std::string message;
  EXPECT_EQ(FaultOf(*runtime, job, &message), Fault::kWallClock);
  EXPECT_NE(message.find("100 ms"), std::string::npos) << message;
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took, 300ms);  // limit and grace
  EXPECT_LT(took, 5s);
  ExpectEcho(*runtime);
}

TEST(WorkerRuntime, KillsAWorkerThatStopsReading) {
  auto runtime = Make();
  ExpectEcho(*runtime);
  ASSERT_NO_FATAL_FAILURE(SignalWorker(*runtime, SIGSTOP));
  EncodedJob job = JobOf("echo", "{\"x\":\"" + std::string(8u << 20, 'x') + "\"}");
  job.limits.wall_clock = 100ms;
  EXPECT_EQ(FaultOf(*runtime, job), Fault::kWallClock);
  ExpectEcho(*runtime);
}

TEST(WorkerRuntime, EndsAWorkerThatTakesMoreMemoryThanItsCgroupAllows) {
  if (os::FindControllers()[0].version == 0) GTEST_SKIP() << os::FindControllers()[0].reason;
  WorkerOptions options = OneWorker();
  options.cgroup.memory_bytes = 96u << 20;
  auto runtime = Make(options);
  std::string message;
  EXPECT_EQ(FaultOf(*runtime, JobOf("eat 200"), &message), Fault::kKilled);
  EXPECT_NE(message.find("memory"), std::string::npos) << message;
  EXPECT_EQ(FaultOf(*runtime, JobOf("eat 20")), Fault::kNone);
}

TEST(WorkerRuntime, ServesManyThreadsAndSubmittersAtOnce) {
  WorkerOptions options = OneWorker();
  options.workers = 2;
  auto runtime = Make(options);
  std::atomic<int> good{0};
  Answers answers;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::string payload = "{\"i\":" + std::to_string(t * 1000 + i) + "}";
        if (t % 2 == 0) runtime->Submit(JobOf("echo", payload), answers.Take());
        const auto result = runtime->CallEncoded(JobOf("echo", payload));
        good += result && result->value_text == payload;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 1200);
  EXPECT_EQ(answers.Await(600).size(), 600u);
}

TEST(WorkerRuntime, RunsTwoLongCallsInTwoWorkers) {
  WorkerOptions options = OneWorker();
  options.workers = 2;
  auto runtime = Make(options);
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core";
  ExpectEcho(*runtime);
  Answers answers;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 2; ++i) runtime->Submit(JobOf("sleep 1000"), answers.Take());
  answers.Await(2);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 1900ms);
  EXPECT_EQ(runtime->Stats().running, 2u);
}

TEST(WorkerRuntime, ForgetsSourcesWithoutLosingCalls) {
  auto runtime = Make();
  for (int i = 0; i < 2500; ++i) {
    const auto result = runtime->CallEncoded(JobOf("count " + std::to_string(i)));
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->value_text, "{\"calls\":" + std::to_string(i + 1) + "}");
  }
}

TEST(WorkerRuntime, SubmitsFromItsCallbacks) {
  auto runtime = Make();
  std::atomic<int> left{500};
  std::promise<void> done;
  std::function<void(Result<EncodedOutcome>)> next = [&](Result<EncodedOutcome> result) {
    EXPECT_TRUE(result);
    if (--left == 0) {
      done.set_value();
    } else {
      runtime->Submit(JobOf("echo"), next);
    }
  };
  runtime->Submit(JobOf("echo"), next);
  EXPECT_EQ(done.get_future().wait_for(30s), std::future_status::ready);
}

TEST(WorkerRuntime, AnswersWaitingCallsWhenItIsDestroyed) {
  Answers answers;
  {
    auto runtime = Make();
    ExpectEcho(*runtime);
    for (int i = 0; i < 3; ++i) runtime->Submit(JobOf("sleep 60000"), answers.Take());
    std::this_thread::sleep_for(20ms);
  }
  for (const auto& result : answers.Await(3)) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, errors::kIsolateWorkerLost);
  }
}

TEST(WorkerRuntime, AnswersThreadsThatWaitWhenItIsShutDownAndRefusesLaterCalls) {
  auto runtime = Make();
  ExpectEcho(*runtime);
  std::vector<std::thread> threads;
  std::atomic<int> lost = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      auto result = runtime->CallEncoded(JobOf("sleep 60000"));
      if (!result && result.error().code == errors::kIsolateWorkerLost) ++lost;
    });
  }
  std::this_thread::sleep_for(50ms);
  runtime->Shutdown();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lost, 4);
  EXPECT_EQ(runtime->Stats().running, 0u);
  auto later = runtime->CallEncoded(JobOf("echo"));
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, errors::kIsolateWorkerLost);
}

TEST(WorkerRuntime, ShutsDownWhileAWorkerStarts) {
  WorkerOptions options = OneWorker();
  options.arguments = {"hang"};
  options.start_timeout = 1h;
  auto runtime = Make(options);
  Answers answers;
  runtime->Submit(JobOf("echo"), answers.Take());
  std::thread waiting([&] { EXPECT_FALSE(runtime->Warm()); });
  std::this_thread::sleep_for(200ms);
  runtime->Shutdown();
  waiting.join();
  const auto results = answers.Await(1);
  ASSERT_FALSE(results[0]);
  EXPECT_EQ(results[0].error().code, errors::kIsolateWorkerLost);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "the worker has gone";
}

TEST(WorkerRuntime, PassesOnWhyTheFactoryFailed) {
  WorkerOptions options = OneWorker();
  options.arguments = {"fail"};
  auto runtime = Make(options);
  for (int i = 0; i < 2; ++i) {
    const auto result = runtime->CallEncoded(JobOf("echo"));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, errors::kWasmArtifact);
    EXPECT_EQ(result.error().message, "no artifact, as asked");
  }
}

TEST(WorkerRuntime, GivesUpOnWorkersThatDoNotStart) {
  for (const char* how : {"die", "garbage", "hang"}) {
    WorkerOptions options = OneWorker();
    options.arguments = {how};
    options.start_timeout = 300ms;
    auto runtime = Make(options);
    const auto result = runtime->CallEncoded(JobOf("echo"));
    ASSERT_FALSE(result) << how;
    EXPECT_EQ(result.error().code, errors::kIsolateWorkerLost) << how;
  }
}

TEST(WorkerRuntime, RefusesToRunWithoutAMandatoryWall) {
  WorkerOptions options = OneWorker();
  options.executable = "/nonexistent/caisson";
  auto runtime = Make(options);
  EXPECT_FALSE(runtime->CallEncoded(JobOf("echo")));
}

TEST(WorkerRuntime, SaysWhichWallsStandAroundItsWorkers) {
  auto runtime = Make();
  const auto walls = runtime->Walls();
  ASSERT_TRUE(walls) << walls.error().message;
  ASSERT_EQ(walls->size(), jail::kWallCount);
  for (const jail::WallReport& wall : *walls) {
    EXPECT_TRUE(wall.stands || !wall.mandatory) << wall.name << ": " << wall.reason;
  }
  const json::Value describe = runtime->Describe();
  ASSERT_NE(describe.Find("runtime"), nullptr);
  EXPECT_EQ(describe.Find("walls")->as_array().size(), jail::kWallCount);
}

TEST(WorkerRuntime, LeavesNothingBehindAfterAThousandCalls) {
  const auto descriptors = [] {
    const auto entries = std::filesystem::directory_iterator("/proc/self/fd");
    return std::distance(begin(entries), end(entries));
  };
  const auto before = descriptors();
  {
    auto runtime = Make();
    for (int i = 0; i < 1000; ++i) ExpectEcho(*runtime);
    EXPECT_EQ(FaultOf(*runtime, JobOf("die 1")), Fault::kKilled);
    const std::uint64_t resident = runtime->Stats().resident_bytes;
    EXPECT_LT(resident, 64u << 20);
  }
  EXPECT_EQ(descriptors(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  for (const auto& place : os::FindControllers()) {
    if (place.version == 0) continue;
    for (const auto& entry : std::filesystem::directory_iterator(place.parent)) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(os::Cgroup::NamePrefix()))
          << entry.path();
    }
  }
}

TEST(WorkerRuntime, EndsItsWorkersWhenItIsKilled) {
  // So that the orphan comes to us, who can wait for it.
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  int pipe_fds[2];
  ASSERT_EQ(::pipe(pipe_fds), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto runtime = Make();
    (void)runtime->CallEncoded(JobOf("echo"));
    const std::vector<int> workers = runtime->Stats().process_ids;
    const pid_t worker = workers.size() == 1 ? workers[0] : 0;
    (void)!::write(pipe_fds[1], &worker, sizeof worker);
    (void)runtime->CallEncoded(JobOf("sleep 60000"));
    ::_exit(0);
  }
  ::close(pipe_fds[1]);
  pid_t worker = 0;
  const ssize_t read = ::read(pipe_fds[0], &worker, sizeof worker);
  ASSERT_GT(child, 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_EQ(read, static_cast<ssize_t>(sizeof worker));
  ASSERT_GT(worker, 1);
  pid_t ended = 0;
  for (int i = 0; i < 1000 && ended == 0; ++i) {
    ended = ::waitpid(worker, nullptr, WNOHANG);
    if (ended == 0) std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(ended, worker);  // by the signal, or by itself when its call had not come yet
  // The reaper of the cgroups is the only other one, and ends when they have gone.
  while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
  const std::string groups = "caisson." + std::to_string(child) + "-";
  for (const auto& place : os::FindControllers()) {
    if (place.version == 0) continue;
    for (const auto& entry : std::filesystem::directory_iterator(place.parent)) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(groups)) << entry.path();
    }
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  ::close(pipe_fds[0]);
}

// ---- the real runtime, in its jail ----

std::string Body(const std::string& lines) { return "def run(self, state, config):\n" + lines; }

// Wasmtime is not built for ThreadSanitizer, which then neither delivers signals to its threads nor
// understands its locks.
#define SKIP_UNDER_THREAD_SANITIZER() \
  if (kThreadSanitizer) GTEST_SKIP() << "Wasmtime is not built for ThreadSanitizer"

constexpr std::uint64_t kQuarantine = 256u << 20;  // where AddressSanitizer keeps freed memory

std::unique_ptr<WorkerRuntime> MakeMicroPython() {
  WorkerOptions options = OneWorker();
  options.arguments = {"micropython"};
  options.grace = 2'000ms;
  // The first start may have to compile the artifact.
  options.start_timeout = 120s;
  return Make(options);
}

TEST(MicroPythonInAWorker, BreaksEachLimitByItsOwnKindAndServesTheNextCall) {
  SKIP_UNDER_THREAD_SANITIZER();
  struct Case {
    const char* name;
    std::string source;
    Limits limits;
    Fault fault;
    MemoryKind memory = MemoryKind::kNone;
  };
  Limits plain;
  Limits no_fuel = plain;
  no_fuel.fuel = 0;
  no_fuel.wall_clock = 200ms;
  Limits little_output = plain;
  little_output.output_bytes = 100;
  Limits little_heap = plain;
  little_heap.heap_bytes = 1u << 20;
  Limits little_fuel = plain;
  little_fuel.fuel = 5'000'000;
  const std::vector<Case> cases = {
      {"value", Body("    return {'x': 1}\n"), plain, Fault::kNone},
      {"raised", Body("    raise ValueError('no')\n"), plain, Fault::kRaised},
      {"exited", Body("    raise SystemExit(3)\n"), plain, Fault::kExited},
      {"syntax", "def run(self, state, config:\n", plain, Fault::kSyntax},
      {"no object", Body("    return 7\n"), plain, Fault::kProtocol},
      {"fuel", Body("    while True: pass\n"), little_fuel, Fault::kFuel},
      {"wall clock", Body("    while True: pass\n"), no_fuel, Fault::kWallClock},
      {"output", Body("    return {'x': 'y' * 1000}\n"), little_output, Fault::kOutput},
      {"heap", Body("    x = []\n    while True: x.append('z' * 1000)\n"), little_heap,
       Fault::kMemory, MemoryKind::kHeap},
  };
  auto runtime = MakeMicroPython();
  for (const Case& each : cases) {
    EncodedJob job;
    job.source = each.source;
    job.payload = R"({"self":{},"state":{},"config":{}})";
    job.limits = each.limits;
    for (int i = 0; i < 2; ++i) {
      const auto result = runtime->CallEncoded(job);
      ASSERT_TRUE(result) << each.name << ": " << result.error().message;
      const Outcome outcome = Decode(*result);
      EXPECT_EQ(outcome.fault, each.fault) << each.name << ": " << outcome.message;
      EXPECT_EQ(outcome.memory, each.memory) << each.name;
    }
  }
  // No fault of a guest has cost a worker.
  EXPECT_EQ(runtime->Stats().started, 1u);
}

TEST(MicroPythonInAWorker, GivesTheSameAsInThisProcessAndStaysAsSmall) {
  SKIP_UNDER_THREAD_SANITIZER();
  auto runtime = MakeMicroPython();
  Job job;
  job.source = Body("    return {'n': [state['n'] * i for i in range(50)], 'k': self.k}\n");
  job.self = json::Object{{"k", 2.5}};
  job.state = json::Object{{"n", 7}};
  job.config = json::Object{};
  const auto first = runtime->Call(job);
  ASSERT_TRUE(first && first->ok()) << (first ? first->message : first.error().message);
  EXPECT_EQ(first->value.Find("n")->as_array()[49], json::Value(343));
  for (int i = 0; i < 200; ++i) (void)runtime->Call(job);
  const std::uint64_t before = runtime->Stats().resident_bytes;
  for (int i = 0; i < 1000; ++i) {
    const auto next = runtime->Call(job);
    ASSERT_TRUE(next && next->value == first->value);
  }
  EXPECT_LT(runtime->Stats().resident_bytes, before + (kAddressSanitizer ? kQuarantine : 4u << 20));
  EXPECT_EQ(runtime->Stats().started, 1u);
}

// Whatever a call changes, the next one in the same worker finds as it was, be it of the same
// source or of another.
TEST(MicroPythonInAWorker, NothingThatACallLeavesIsSeenByTheNext) {
  SKIP_UNDER_THREAD_SANITIZER();
  auto runtime = MakeMicroPython();
  const auto call = [&](const std::string& source) {
    EncodedJob job = JobOf(source, R"({"self":{"f":1},"state":{"l":[1]},"config":{}})");
    const auto result = runtime->CallEncoded(job);
    EXPECT_TRUE(result) << result.error().message;
    if (!result) return std::string();
    const Outcome outcome = Decode(*result);
    if (!outcome.ok()) return outcome.error_type + ": " + outcome.message;
    return json::WriteCanonical(outcome.value).value_or("?");
  };
  // Each makes a mark if it can, and tells whether it found one.
  const std::vector<std::pair<std::string, std::string>> marks = {
      {"a global list",
       "kept = []\ndef mark(self, state):\n    kept.append(1)\n"
       "    return len(kept) - 1\n"},
      {"a global name",
       "n = 0\ndef mark(self, state):\n    global n\n    n += 1\n"
       "    return n - 1\n"},
      {"a default argument",
       "def mark(self, state, kept=[]):\n    kept.append(1)\n"
       "    return len(kept) - 1\n"},
      {"the class of self",
       "def mark(self, state):\n    found = hasattr(type(self), 'm')\n"
       "    type(self).m = 1\n    return found\n"},
      {"self",
       "def mark(self, state):\n    found = hasattr(self, 'm')\n    self.m = 1\n"
       "    return found or self.f != 1\n"},
      {"the state",
       "def mark(self, state):\n    state['l'].append(2)\n"
       "    return len(state['l']) != 2\n"},
      {"a built-in type",
       "def mark(self, state):\n    found = hasattr(list, 'm')\n    try:\n"
       "        list.m = 1\n    except (AttributeError, TypeError):\n"
       "        pass\n    return found\n"},
      {"an exception class",
       "def mark(self, state):\n    found = hasattr(ValueError, 'm')\n"
       "    try:\n        ValueError.m = 1\n"
       "    except (AttributeError, TypeError):\n        pass\n"
       "    return found\n"},
      {"an own class",
       "class C:\n    n = 0\ndef mark(self, state):\n    C.n += 1\n"
       "    return C.n - 1\n"},
      {"a generator",
       "def g():\n    n = 0\n    while True:\n        n += 1\n        yield n\n"
       "it = g()\ndef mark(self, state):\n    return next(it) - 1\n"},
      {"a function's attribute",
       "def mark(self, state):\n    try:\n"
       "        found = hasattr(mark, 'm')\n        mark.m = 1\n"
       "    except AttributeError:\n        found = False\n"
       "    return found\n"},
  };
  for (const auto& [what, source] : marks) {
    const std::string run = source +
                            "def run(self, state, config):\n"
                            "    return {'found': int(mark(self, state))}\n";
    for (int i = 0; i < 3; ++i) EXPECT_EQ(call(run), R"({"found":0})") << what;
    EXPECT_EQ(call(run + "# of another source\n"), R"({"found":0})") << what;
  }
  EXPECT_EQ(call("def run(self, state, config):\n    return {'a': [m for m in (type(self), list, "
                 "ValueError) if hasattr(m, 'm')]}\n"),
            R"({"a":[]})");
  EXPECT_EQ(runtime->Stats().started, 1u);
}

constexpr std::string_view kDeepRecursion =
    "def run(self, state, config):\n"
    "    l = []\n"
    "    for i in range(100000):\n"
    "        l = [l]\n"
    "    return {'a': str(l)}\n";

TEST(MicroPythonInAWorker, HasTheStackThatItNeedsUnderALowSoftLimit) {
  SKIP_UNDER_THREAD_SANITIZER();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_STACK, &before), 0);
  const rlimit low{1u << 20, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_STACK, &low), 0);
  {
    auto runtime = MakeMicroPython();
    const auto result = runtime->CallEncoded(
        JobOf(std::string(kDeepRecursion), R"({"self":{},"state":{},"config":{}})"));
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outcome.fault, Fault::kRaised) << result->outcome.message;
    EXPECT_EQ(result->outcome.error_type, "RuntimeError");
  }
  ::setrlimit(RLIMIT_STACK, &before);
}

TEST(MicroPythonInAWorker, IsRefusedUnderALimitThatCannotBeRaised) {
  SKIP_UNDER_THREAD_SANITIZER();
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit low{1u << 20, 1u << 20};
    if (::setrlimit(RLIMIT_STACK, &low) != 0) ::_exit(1);
    auto runtime = MakeMicroPython();
    const auto warm = runtime->Warm();
    if (warm) ::_exit(2);
    if (warm.error().code != errors::kWasmLimitTooLow) ::_exit(3);
    ::_exit(warm.error().message.find("RLIMIT_STACK") != std::string::npos ? 0 : 4);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(MicroPythonInAWorker, LosesOneCallToAKill) {
  SKIP_UNDER_THREAD_SANITIZER();
  auto runtime = MakeMicroPython();
  ASSERT_TRUE(runtime->Warm());
  Answers answers;
  EncodedJob job;
  job.source = Body("    while True: pass\n");
  job.payload = R"({"self":{},"state":{},"config":{}})";
  job.limits.fuel = 0;
  runtime->Submit(job, answers.Take());
  std::this_thread::sleep_for(100ms);
  ASSERT_NO_FATAL_FAILURE(SignalWorker(*runtime, SIGKILL));
  const auto killed = answers.Await(1);
  ASSERT_TRUE(killed[0]);
  EXPECT_EQ(killed[0]->outcome.fault, Fault::kKilled);
  job.source = Body("    return {}\n");
  EXPECT_EQ(FaultOf(*runtime, job), Fault::kNone);
}

TEST(WorkerMain, IsNotRunByHand) {
  const char* arguments[] = {"caisson", "__worker", "--jail=nonsense", nullptr};
  auto command = ParseWorkerCommand(3, const_cast<char**>(arguments));
  ASSERT_TRUE(command);
  EXPECT_EQ(WorkerMain(*command, [] { return MakeExecutor({}); }), 2);
  EXPECT_FALSE(ParseWorkerCommand(2, const_cast<char**>(arguments)));
}

}  // namespace
}  // namespace caisson::isolate

int main(int argc, char** argv) {
  namespace isolate = caisson::isolate;
  if (argc > 1 && argv[1] == isolate::kWorkerCommand) {
    const auto command = isolate::ParseWorkerCommand(argc, argv);
    return command ? isolate::WorkerMain(*command, [&] { return isolate::MakeExecutor(*command); })
                   : 2;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
