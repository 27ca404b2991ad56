// SPDX-License-Identifier: Apache-2.0
// What the way through a jailed worker costs: latency of a call, throughput with both processes on
// one core, cost by size, start of a worker, memory. With an executor that only echoes, and with
// MicroPython. Prints JSON lines for bench/run.py.
//
//   worker_bench [seconds of each throughput part, default 3] [echo|micropython, default both]
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "isolate/executor.h"
#include "isolate/micropython/executor.h"
#include "isolate/worker/worker.h"
#include "wasm/module_cache.h"

namespace caisson::isolate {
namespace {

using Clock = std::chrono::steady_clock;

class EchoExecutor final : public Executor {
 public:
  Result<EncodedOutcome> Execute(const EncodedJob& job) override {
    return EncodedOutcome{.outcome = {}, .value_text = job.payload};
  }
  json::Value Describe() const override { return json::Object{{"runtime", "echo"}}; }
};

// Arguments of the worker: echo, or micropython with its artifact and cache, since a worker has no
// environment to find them by.
Result<std::unique_ptr<Executor>> MakeExecutor(const std::vector<std::string>& arguments) {
  if (arguments[0] == "echo") return std::make_unique<EchoExecutor>();
  MicroPythonOptions options;
  options.artifact = arguments.at(1);
  options.cache_dir = arguments.at(2);
  options.heap_sizes = {Limits{}.heap_bytes, 64u << 20};
  options.max_concurrent_calls = 1;
  return MicroPythonExecutor::Create(options);
}

double Microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

[[noreturn]] void Give(const std::string& why) {
  std::fprintf(stderr, "worker_bench: %s\n", why.c_str());
  std::exit(1);
}

const EncodedOutcome& Good(const Result<EncodedOutcome>& outcome) {
  if (!outcome) Give(outcome.error().message);
  if (!outcome->outcome.ok()) Give(outcome->outcome.message);
  return *outcome;
}

void Print(const std::string& what, double value, const char* unit, double target = 0,
           bool at_least = false) {
  fmt::print(R"({{"what":"{}","value":{:.1f},"unit":"{}")", what, value, unit);
  if (target != 0) {
    fmt::print(R"(,"target":"{} {} {}","ok":{})", at_least ? ">=" : "<=", target, unit,
               at_least ? value >= target : value <= target);
  }
  fmt::print("}}\n");
  std::fflush(stdout);
}

EncodedJob Trivial() {
  EncodedJob job;
  job.source =
      "def run(self, state, config):\n"
      "    score = state['node_results']['score']['value']\n"
      "    return {'verdict': 'pass' if score >= self.threshold else 'fail'}\n";
  job.payload =
      R"({"self":{"threshold":5},"state":{"inputs":{},"node_results":{"score":{"value":7}}},)"
      R"("config":{"thread_id":"t"}})";
  return job;
}

EncodedJob Sized(std::size_t bytes) {
  EncodedJob job;
  job.source = "def run(self, state, config):\n    return {'rows': state['rows']}\n";
  job.payload = R"({"self":{},"config":{},"state":{"rows":[0)";
  for (std::size_t i = 0; i * 100 < bytes; ++i) {
    job.payload +=
        fmt::format(R"(,{{"id":{},"score":{},"name":"{:054}"}})", i, static_cast<double>(i) / 8, i);
  }
  job.payload += "]}}";
  job.limits.heap_bytes = 64u << 20;
  return job;
}

double Quantile(std::vector<double>& samples, double q) {
  std::ranges::sort(samples);
  return samples[static_cast<std::size_t>(q * static_cast<double>(samples.size() - 1))];
}

std::vector<double> Measure(WorkerRuntime& runtime, const EncodedJob& job, int count) {
  std::vector<double> samples;
  for (int i = -count / 10; i < count; ++i) {
    EncodedJob copy = job;
    const Clock::time_point begin = Clock::now();
    (void)Good(runtime.CallEncoded(std::move(copy)));
    if (i >= 0) samples.push_back(Microseconds(Clock::now() - begin));
  }
  return samples;
}

// Keeps `depth` calls under way for `seconds`.
double CallsPerSecond(WorkerRuntime& runtime, const EncodedJob& job, double seconds, int depth) {
  std::mutex mutex;
  std::condition_variable ended;
  int open = depth;
  std::atomic<std::uint64_t> calls{0};
  const Clock::time_point begin = Clock::now();
  std::function<void(Result<EncodedOutcome>)> next = [&](Result<EncodedOutcome> outcome) {
    (void)Good(outcome);
    ++calls;
    if (Microseconds(Clock::now() - begin) < seconds * 1e6) {
      runtime.Submit(job, next);
      return;
    }
    const std::lock_guard lock(mutex);
    if (--open == 0) ended.notify_all();
  };
  for (int i = 0; i < depth; ++i) runtime.Submit(job, next);
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return open == 0; });
  return static_cast<double>(calls) / (Microseconds(Clock::now() - begin) / 1e6);
}

void PinToOneCore() {
  cpu_set_t all;
  ::sched_getaffinity(0, sizeof all, &all);
  int last = 0;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &all)) last = i;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

std::unique_ptr<WorkerRuntime> Start(const std::string& kind) {
  WorkerOptions options;
  options.arguments = {kind, DefaultMicroPythonArtifact(), wasm::DefaultCacheDir()};
  options.workers = 1;
  auto runtime = WorkerRuntime::Create(options);
  if (!runtime) Give(runtime.error().message);
  if (auto warm = (*runtime)->Warm(); !warm) Give(warm.error().message);
  return *std::move(runtime);
}

double MiB(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void Run(const std::string& kind, double seconds) {
  (void)Start(kind);  // fills the module cache
  const Clock::time_point begin = Clock::now();
  auto runtime = Start(kind);
  Print(kind + ": start of a jailed worker", Microseconds(Clock::now() - begin) / 1e3, "ms");
  Print(kind + ": idle worker, resident", MiB(runtime->Stats().resident_bytes), "MiB");

  const bool real = kind != "echo";
  std::vector<double> samples = Measure(*runtime, Trivial(), 5000);
  Print(kind + ": trivial call through the worker, p50", Quantile(samples, 0.5), "us",
        real ? 150 : 0);
  Print(kind + ": trivial call through the worker, p99", Quantile(samples, 0.99), "us",
        real ? 1000 : 0);
  for (const std::size_t size : {1u << 10, 64u << 10, 1u << 20, 4u << 20}) {
    samples = Measure(*runtime, Sized(size), size > (1u << 19) ? 10 : 50);
    Print(fmt::format("{}: {} KiB in and out, p50", kind, size >> 10), Quantile(samples, 0.5) / 1e3,
          "ms", real && size == 1u << 20 ? 200 : 0);
  }

  cpu_set_t all;
  ::sched_getaffinity(0, sizeof all, &all);
  PinToOneCore();
  runtime = Start(kind);
  CallsPerSecond(*runtime, Trivial(), 0.3, 8);
  const std::uint64_t before = runtime->Stats().resident_bytes;
  Print(kind + ": pipelined calls, both processes on one core",
        CallsPerSecond(*runtime, Trivial(), seconds, 8), "calls/s", real ? 8000 : 0, true);
  Print(kind + ": growth of the worker meanwhile",
        MiB(runtime->Stats().resident_bytes) - MiB(before), "MiB");
  runtime.reset();
  ::sched_setaffinity(0, sizeof all, &all);
}

}  // namespace
}  // namespace caisson::isolate

int main(int argc, char** argv) {
  namespace isolate = caisson::isolate;
  if (argc > 1 && argv[1] == isolate::kWorkerCommand) {
    const auto command = isolate::ParseWorkerCommand(argc, argv);
    if (!command) return 2;
    return isolate::WorkerMain(*command, [&] { return isolate::MakeExecutor(command->arguments); });
  }
  const double seconds = argc > 1 ? std::atof(argv[1]) : 3;
  const std::string_view only = argc > 2 ? argv[2] : "";
  for (const char* kind : {"echo", "micropython"}) {
    if (only.empty() || only == kind) isolate::Run(kind, seconds);
  }
}
