// SPDX-License-Identifier: Apache-2.0
// What a script costs through a jailed worker, in this process, and in a never-used memory; private
// memory per run; throughput. Prints JSON lines for bench/run.py. Needs a prepared cache.
//
//   cpython_bench [runs of each, default 200]
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "isolate/cpython/executor.h"
#include "isolate/cpython/prepare.h"
#include "isolate/cpython/seal.h"
#include "isolate/large_stack.h"
#include "isolate/worker/script_worker.h"
#include "wasm/module_cache.h"

namespace caisson::isolate {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

struct Work {
  const char* name;
  ScriptJob job;
};

std::string Rows(int count) {
  std::string rows;
  for (int i = 0; i < count; ++i) {
    rows += fmt::format("{}{{\"k\":\"{}\",\"v\":{}.5}}", i == 0 ? "" : ",", "abcde"[i % 5], i);
  }
  return "[" + rows + "]";
}

ScriptJob Script(const std::string& source, const std::string& documents,
                 std::vector<std::string> imports) {
  ScriptJob job;
  job.source = source;
  job.inputs =
      R"({"user":{},"documents":)" + documents + R"(,"artifacts":[],"sources":[],"tables":{}})";
  job.imports = std::move(imports);
  return job;
}

ScriptJob Body(const std::string& source, const std::string& state) {
  ScriptJob job;
  job.entry = ScriptEntry::kBody;
  job.source = source;
  job.inputs = R"({"self":{},"state":)" + state + R"(,"config":{}})";
  return job;
}

std::vector<Work> AllWork() {
  return {
      {"empty", Script("pass", "[]", {})},
      {"node", Body("def run(self, state, config):\n"
                    "    return {'sum': sum(r['v'] for r in state['rows'])}\n",
                    "{\"rows\":" + Rows(60) + "}")},
      {"pandas", Script("import pandas as pd\ndone(int(pd.DataFrame({'a':[1,2]}).a.sum()))\n", "[]",
                        {"pandas"})},
      {"groupby", Script("import pandas as pd\nd = pd.DataFrame(documents)\n"
                         "r = d.groupby('k').v.agg(['sum','mean']).reset_index()\n"
                         "done(r.to_dict('records'))\n",
                         Rows(60), {"pandas"})},
  };
}

class Ignore final : public ScriptSink {
 public:
  bool Take(const ScriptMessage&) override { return true; }
};

using RunOnce = std::function<Result<ScriptOutcome>(const ScriptJob&)>;

struct Target {
  std::string_view name;
  double bound;
  bool is_least = false;
};
constexpr Target kTargets[] = {
    {"worker.empty.p50", 0.6},    {"worker.node.p50", 1.5},
    {"worker.pandas.p50", 4},     {"worker.pandas.p99", 10},
    {"worker.groupby.p50", 10},   {"never_used.pandas.p50", 15},
    {"private_memory.pandas", 6}, {"workers.pandas.throughput", 350, true}};

void Print(const std::string& name, double value, const char* unit) {
  std::string goal;
  for (const Target& target : kTargets) {
    if (target.name != name) continue;
    const bool ok = target.is_least ? value >= target.bound : value <= target.bound;
    goal = fmt::format(R"(,"target":"{} {} {}","ok":{})",
                       target.is_least ? ">=" : "<=", target.bound, unit, ok);
  }
  fmt::print(R"({{"what":"cpython.{}","value":{:.3f},"unit":"{}"{}}}{})", name, value, unit, goal,
             "\n");
}

bool Measure(
    const std::string& prefix, int runs, const RunOnce& run,
    const std::function<void()>& after = [] {}) {
  for (const Work& work : AllWork()) {
    std::vector<double> times;
    std::vector<double> cpu;  // of the guest's thread: what a busy machine does not change much
    for (int i = 0; i < runs + 5; ++i) {
      const auto start = Clock::now();
      const auto outcome = run(work.job);
      const double took = Milliseconds(Clock::now() - start).count();
      after();
      if (!outcome || !outcome->ok()) {
        std::fprintf(stderr, "%s: %s\n", work.name,
                     outcome ? outcome->message.c_str() : outcome.error().message.c_str());
        return false;
      }
      if (i < 5) continue;
      times.push_back(took);
      cpu.push_back(Milliseconds(outcome->cpu).count());
    }
    std::ranges::sort(times);
    std::ranges::sort(cpu);
    Print(fmt::format("{}.{}.cpu.p50", prefix, work.name), cpu[cpu.size() / 2], "ms");
    Print(fmt::format("{}.{}.p50", prefix, work.name), times[times.size() / 2], "ms");
    Print(fmt::format("{}.{}.p99", prefix, work.name), times[times.size() * 99 / 100], "ms");
  }
  return true;
}

// Of this process, in KiB: the pages of private mappings that were written.
double AnonymousKib() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Anonymous:")) return std::strtod(line.c_str() + 10, nullptr);
  }
  return 0;
}

bool InProcess(const cpython::CPythonOptions& options, int runs) {
  auto executor = cpython::CPythonExecutor::Create(options);
  if (!executor) return false;
  const std::function<bool()> never = [] { return false; };
  Ignore sink;
  const RunOnce run = [&](const ScriptJob& job) { return (*executor)->Execute(job, sink, never); };
  return Measure("process", runs, run, [&] { (*executor)->Recover(); });
}

// Each run in a new executor's second memory: nothing of it was ever touched.
bool NeverUsed(const cpython::CPythonOptions& options) {
  const Work work = AllWork()[2];
  std::vector<double> times;
  std::vector<double> memory;
  auto executor = cpython::CPythonExecutor::Create(options);
  if (!executor) return false;
  const std::function<bool()> never = [] { return false; };
  // A run that is under way keeps its memory, so that the one inside it gets another.
  class Nested final : public ScriptSink {
   public:
    explicit Nested(std::function<void()> inside) : inside_(std::move(inside)) {}
    bool Take(const ScriptMessage&) override {
      inside_();
      return true;
    }

   private:
    std::function<void()> inside_;
  };
  int depth = 0;
  std::function<void()> deeper = [&] {
    if (++depth > 8) return;
    const double before = AnonymousKib();
    const auto start = Clock::now();
    Nested sink([&] {
      times.push_back(Milliseconds(Clock::now() - start).count());
      memory.push_back(AnonymousKib() - before);
      deeper();
    });
    (void)OnLargeStack((*executor)->stack_bytes(),
                       [&] { (void)(*executor)->Execute(work.job, sink, never); });
  };
  deeper();
  if (times.size() < 3) return false;
  times.erase(times.begin());  // the one memory that the self-test has used
  memory.erase(memory.begin());
  std::ranges::sort(times);
  std::ranges::sort(memory);
  Print("never_used.pandas.p50", times[times.size() / 2], "ms");
  Print("private_memory.pandas", memory[memory.size() / 2] / 1024, "MiB");
  return true;
}

bool Throughput(ScriptWorkerRuntime& runtime, int runs) {
  const Work work = AllWork()[2];
  const auto start = Clock::now();
  std::vector<std::jthread> threads;
  threads.reserve(2);
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      Ignore sink;
      for (int i = 0; i < runs; ++i) (void)runtime.Run(work.job, sink, {});
    });
  }
  threads.clear();
  Print("workers.pandas.throughput",
        2.0 * runs / (Milliseconds(Clock::now() - start).count() / 1e3), "1/s");
  return true;
}

int Bench(int runs) {
  cpython::CPythonOptions options;
  options.sets = {"base", "pandas"};
  options.tenant = "local";
  options.cache_dir = wasm::DefaultCacheDir();
  const auto prepared = cpython::Prepare(
      options, [](const auto& step) { std::fprintf(stderr, "%s\n", step.text.c_str()); }, {});
  if (!prepared) {
    std::fprintf(stderr, "%s\n", prepared.error().message.c_str());
    return 1;
  }
  bool good = true;
  (void)OnLargeStack(24u << 20, [&] { good = InProcess(options, runs) && NeverUsed(options); });
  WorkerOptions workers;
  workers.arguments = WordsFromOptions(options);
  workers.workers = 2;
  workers.cgroup.memory_bytes = 1536u << 20;
  auto runtime = ScriptWorkerRuntime::Create(workers);
  if (!good || !runtime || !(*runtime)->Warm()) return 1;
  Ignore sink;
  const RunOnce run = [&](const ScriptJob& job) { return (*runtime)->Run(job, sink, {}); };
  return Measure("worker", runs, run) && Throughput(**runtime, runs) ? 0 : 1;
}

Result<ScriptWorkerParts> MakeParts(const WorkerCommand& command) {
  CAISSON_ASSIGN(const cpython::CPythonOptions options,
                 cpython::OptionsFromWords(command.arguments));
  CAISSON_ASSIGN(auto executor, cpython::CPythonExecutor::Create(options));
  ScriptWorkerParts parts;
  parts.syscalls = cpython::SealSyscalls(executor->pagemap_descriptor());
  parts.executor = std::move(executor);
  return parts;
}

}  // namespace
}  // namespace caisson::isolate

int main(int argc, char** argv) {
  namespace isolate = caisson::isolate;
  if (argc > 1 && argv[1] == isolate::kWorkerCommand) {
    const auto command = isolate::ParseWorkerCommand(argc, argv);
    return command
               ? isolate::ScriptWorkerMain(*command, [&] { return isolate::MakeParts(*command); })
               : 2;
  }
  return isolate::Bench(argc > 1 ? std::max(1, std::atoi(argv[1])) : 200);
}
