// SPDX-License-Identifier: Apache-2.0
// Latency, first calls, sizes and throughput of the MicroPython runtime in this process. Prints
// JSON lines for bench/run.py.
//
//   micropython_bench [seconds of the throughput part, default 3]

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "isolate/executor.h"
#include "isolate/micropython/executor.h"
#include "isolate/micropython/object_writer.h"
#include "isolate/micropython/pins.h"
#include "isolate/micropython/snapshot.h"
#include "json/writer.h"
#include "wasm/artifact.h"
#include "wasm/engine.h"
#include "wasm/module_cache.h"

namespace caisson::isolate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kTrivial =
    "def run(self, state, config):\n"
    "    score = state['node_results']['score']['value']\n"
    "    verdict = 'pass' if score >= self.threshold else 'fail'\n"
    "    return {'verdict': verdict}\n";

double Microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

double Quantile(std::vector<double>& samples, double q) {
  std::ranges::sort(samples);
  return samples[static_cast<std::size_t>(q * static_cast<double>(samples.size() - 1))];
}

// `target`: the most that `value` may be; 0 for none.
void Print(const std::string& what, double value, const char* unit, double target = 0) {
  fmt::print(R"({{"what":"{}","value":{:.1f},"unit":"{}")", what, value, unit);
  if (target != 0) fmt::print(R"(,"target":"<= {} {}","ok":{})", target, unit, value <= target);
  fmt::print("}}\n");
  std::fflush(stdout);
}

void PrintLatency(const std::string& what, std::vector<double> samples, double target = 0) {
  Print(what + ", p50", Quantile(samples, 0.5), "us", target);
  Print(what + ", p99", Quantile(samples, 0.99), "us");
}

std::vector<double> Measure(int count, const std::function<void(int)>& action) {
  std::vector<double> samples;
  for (int i = -count / 10; i < count; ++i) {
    const Clock::time_point begin = Clock::now();
    action(i);
    if (i >= 0) samples.push_back(Microseconds(Clock::now() - begin));
  }
  return samples;
}

void Check(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "bench: %s failed\n", what);
  std::exit(1);
}

long ResidentKiB() {
  std::ifstream file("/proc/self/statm");
  long size = 0;
  long resident = 0;
  file >> size >> resident;
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

// Pages of this process's own, not of files that it shares with others.
long AnonymousKiB() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string word; file >> word;) {
    long amount = 0;
    if (word == "Anonymous:" && file >> amount) return amount;
  }
  return 0;
}

double ProcessCpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

Job TrivialJob() {
  Job job;
  job.source = kTrivial;
  job.self = json::Object{{"threshold", 5}};
  job.state = json::Object{{"inputs", json::Object{}},
                           {"node_results", json::Object{{"score", json::Object{{"value", 7}}}}}};
  job.config = json::Object{{"thread_id", "t"}};
  return job;
}

// About `bytes` of JSON: rows of an object with a number and some text.
Job SizedJob(std::size_t bytes) {
  Job job = TrivialJob();
  job.source = "def run(self, state, config):\n    return {'rows': state['rows']}\n";
  json::Array rows;
  for (std::size_t i = 0; i * 100 < bytes; ++i) {
    rows.push_back(json::Object{{"id", static_cast<std::int64_t>(i)},
                                {"score", static_cast<double>(i) / 8},
                                {"name", fmt::format("{:054}", i)}});
  }
  job.state = json::Object{{"rows", std::move(rows)}};
  job.limits.heap_bytes = 64u << 20;
  return job;
}

void Latency(Executor& executor, Runtime& runtime) {
  const Job job = TrivialJob();
  const EncodedJob encoded = *Encode(job);
  const auto execute = [&](int) { Check(executor.Execute(encoded)->outcome.ok(), "execute"); };
  const auto call = [&](int) { Check(runtime.Call(job)->ok(), "call"); };
  PrintLatency("trivial call, job encoded", Measure(5000, execute));
  PrintLatency("trivial call, caller to result", Measure(5000, call), 60);
  Job fresh = job;
  const auto first = [&](int i) {
    fresh.source = std::string(kTrivial) + fmt::format("# {}\n", i);
    Check(runtime.Call(fresh)->ok(), "first call");
  };
  PrintLatency("first call of a body never seen", Measure(1000, first), 500);
}

void Sizes(Runtime& runtime) {
  for (const std::size_t bytes : {1u << 10, 16u << 10, 256u << 10, 1u << 20, 4u << 20}) {
    const Job job = SizedJob(bytes);
    const int count = bytes > (1u << 19) ? 10 : 100;
    const auto call = [&](int) {
      const Result<Outcome> outcome = runtime.Call(job);
      Check(outcome && outcome->ok(), "sized call");
    };
    PrintLatency(fmt::format("{} KiB of state in and out", bytes >> 10), Measure(count, call),
                 bytes == 1u << 20 ? 200'000 : 0);
  }
}

void Throughput(Executor& executor, double seconds) {
  const EncodedJob encoded = *Encode(TrivialJob());
  const long before = ResidentKiB();
  const double cpu = ProcessCpuSeconds();
  const Clock::time_point begin = Clock::now();
  std::uint64_t calls = 0;
  while (Microseconds(Clock::now() - begin) < seconds * 1e6) {
    for (int i = 0; i < 100; ++i) Check(executor.Execute(encoded)->outcome.ok(), "execute");
    calls += 100;
  }
  const double took = Microseconds(Clock::now() - begin) / 1e6;
  const double cpu_each = (ProcessCpuSeconds() - cpu) * 1e6 / static_cast<double>(calls);
  Print("calls a second on one core", static_cast<double>(calls) / took, "1/s");
  Print("processor time of a call", cpu_each, "us");
  Print("growth of resident memory meanwhile", static_cast<double>(ResidentKiB() - before), "KiB");
  Print("resident memory, two heap sizes prepared", static_cast<double>(ResidentKiB()), "KiB");
}

// What an instance costs while it waits for its call: instances are kept side by side, as made, and
// then each with a compiled body.
Result<void> IdleMemory() {
  constexpr std::uint32_t kInstances = 64;
  CAISSON_ASSIGN(const std::unique_ptr<wasm::Engine> engine,
                 wasm::Engine::Create({.slots = kInstances + 1}));
  CAISSON_ASSIGN(const wasm::ModuleCache cache, wasm::ModuleCache::Open(wasm::DefaultCacheDir()));
  CAISSON_ASSIGN(const std::string artifact,
                 wasm::LoadArtifact(DefaultMicroPythonArtifact(), pins::kDerivedSha256));
  CAISSON_ASSIGN(const std::unique_ptr<Snapshot> snapshot,
                 Snapshot::Make(*engine, cache, artifact, {.heap_bytes = Limits{}.heap_bytes}));
  wasm::WasiContext context;
  const auto make = [&] {
    return Instance::Make(*engine, *snapshot, snapshot->memory_bytes(), context);
  };
  CAISSON_ASSIGN(const std::unique_ptr<Instance> first, make());
  ObjectWriter writer(first->memory());
  const auto source = writer.WriteString(kTrivial);
  writer.Commit();
  Check(source && first->Call(snapshot->load_function(), {*source}).end == CallEnd::kReturned,
        "load");
  const PageDelta body = first->Difference();

  std::vector<std::unique_ptr<Instance>> instances;
  instances.reserve(kInstances);
  const long before = AnonymousKiB();
  for (std::uint32_t i = 0; i < kInstances; ++i) {
    CAISSON_ASSIGN(std::unique_ptr<Instance> instance, make());
    instances.push_back(std::move(instance));
  }
  const long made = AnonymousKiB();
  for (const auto& instance : instances) instance->Apply(body);
  const long loaded = AnonymousKiB();
  const auto each = [](long bytes) { return static_cast<double>(bytes) / kInstances; };
  Print("private memory of an idle instance", each(made - before), "KiB");
  Print("private memory of an idle instance with a body", each(loaded - before), "KiB");
  return {};
}

int Main(double seconds) {
  MicroPythonOptions options;
  options.heap_sizes = {Limits{}.heap_bytes, 64u << 20};
  const Clock::time_point begin = Clock::now();
  Result<std::unique_ptr<Executor>> made = MicroPythonExecutor::Create(options);
  if (!made) {
    std::fprintf(stderr, "bench: %s\n", made.error().message.c_str());
    return 1;
  }
  Executor& executor = **made;
  LocalRuntime runtime(*std::move(made));
  Print("start with a warm module cache", Microseconds(Clock::now() - begin) / 1e3, "ms");
  Latency(executor, runtime);
  Sizes(runtime);
  Throughput(executor, seconds);
  if (const Result<void> idle = IdleMemory(); !idle) {
    std::fprintf(stderr, "bench: %s\n", idle.error().message.c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace caisson::isolate

int main(int argc, char** argv) {
  return caisson::isolate::Main(argc > 1 ? std::atof(argv[1]) : 3);
}
