// SPDX-License-Identifier: Apache-2.0
// What a script costs in a warm zygote, beside the same script in an interpreter that is started
// afresh in the same jail; memory that is a call's own; calls a second. Prints JSON lines for
// bench/run.py; exit code 77 where there is no root file system with pandas in it.
//
//   CAISSON_NATIVE_ROOT=DIR native_bench [runs, default 200 [seconds of throughput, default 10]]
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "isolate/native/native.h"
#include "jail/interpreter_syscalls.h"
#include "jail/rooted.h"
#include "os/fd.h"
#include "os/process.h"
#include "os/seccomp.h"

namespace caisson::isolate::native {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kPandas =
    "import pandas as pd\n"
    "done(float(pd.DataFrame({'a': [1, 2, 3], 'b': [4.0, 5.0, 6.0]}).sum().sum()))\n";
constexpr const char* kGroupBy =
    "import numpy as np, pandas as pd\n"
    "d = pd.DataFrame({'a': np.arange(1000), 'b': np.arange(1000) % 7})\n"
    "done(int(d.groupby('b').a.sum().sum()))\n";

using OnMessage = std::function<void()>;

class Counter final : public ScriptSink {
 public:
  explicit Counter(OnMessage heard = [] {}) : heard_(std::move(heard)) {}
  bool Take(const ScriptMessage& message) override {
    done += message.kind == MessageKind::kDone ? 1 : 0;
    heard_();
    return true;
  }
  int done = 0;

 private:
  OnMessage heard_;
};

[[noreturn]] void Give(const std::string& why) {
  fmt::print(stderr, "native_bench: {}\n", why);
  std::exit(1);
}

struct Target {
  std::string text;
  double most = 0;
};
struct Control {
  std::string name;
  double value = 0;
};

double At(const std::vector<double>& sorted, double share) {
  const auto at = static_cast<std::size_t>(share * static_cast<double>(sorted.size()));
  return sorted[std::min(sorted.size() - 1, at)];
}

// Its median counts; the rest is told.
double Print(const std::string& what, std::vector<double> values, const char* unit,
             const Target& target = {}, const Control& control = {}) {
  std::ranges::sort(values);
  const double median = At(values, 0.5);
  std::string line =
      fmt::format("\"what\":\"{} (p99 {:.3g}, min {:.3g})\",\"value\":{:.3f},\"unit\":\"{}\"", what,
                  At(values, 0.99), values.front(), median, unit);
  if (control.value > 0) {
    line += fmt::format(",\"control\":{:.3f},\"control_name\":\"{}\",\"ratio\":{:.1f}",
                        control.value, control.name, control.value / median);
  }
  if (target.most > 0) {
    line += fmt::format(",\"target\":\"{}\",\"ok\":{}", target.text, median <= target.most);
  }
  fmt::print("{{{}}}\n", line);
  std::fflush(stdout);
  return median;
}

double Milliseconds(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

ScriptJob Job(const std::string& source) {
  ScriptJob job;
  job.source = source;
  job.inputs = "{\"user\":{},\"documents\":[],\"artifacts\":[],\"sources\":[],\"tables\":{}}";
  job.imports = {"numpy", "pandas"};
  return job;
}

ScriptOutcome RunOnce(NativeRuntime& runtime, const ScriptJob& job, Counter& sink) {
  auto outcome = runtime.Run(job, sink, {});
  if (!outcome) Give(outcome.error().message);
  if (!outcome->ok() || sink.done != 1) Give(outcome->message);
  return *std::move(outcome);
}

void Warm(NativeRuntime& runtime, const std::string& what, const std::string& source, int runs,
          const Target& target = {}, const Control& control = {}) {
  const ScriptJob job = Job(source);
  std::vector<double> wall;
  std::vector<double> cpu;
  for (int i = 0; i < runs; ++i) {
    // As requests come: one after the other, and not at once.
    ::poll(nullptr, 0, 20);
    Counter sink;
    const auto begin = Clock::now();
    const ScriptOutcome outcome = RunOnce(runtime, job, sink);
    wall.push_back(Milliseconds(begin));
    cpu.push_back(std::chrono::duration<double, std::milli>(outcome.cpu).count());
  }
  Print(what + ", warm zygote, to the outcome", wall, "ms", target, control);
  Print(what + ", processor time of the script", cpu, "ms");
}

// Of the process, in MiB: what it shares with nobody, its zygote included.
double PrivateOf(const std::string& pid) {
  std::ifstream rollup("/proc/" + pid + "/smaps_rollup");
  double total = 0;
  for (std::string line; std::getline(rollup, line);) {
    if (line.starts_with("Private_")) total += std::atof(line.substr(line.find(':') + 1).c_str());
  }
  return total / 1024;
}

// The call and the spare beside it are children of the zygote; the call has written more.
double PrivateOfCall(const NativeRuntime& runtime) {
  const std::string pid = std::to_string(runtime.ZygotePids().front());
  std::istringstream children(
      os::ReadSmallFile("/proc/" + pid + "/task/" + pid + "/children").value_or(""));
  double most = 0;
  for (std::string child; children >> child;) most = std::max(most, PrivateOf(child));
  return most;
}

void Memory(NativeRuntime& runtime, const std::string& what, const std::string& source, int runs) {
  const ScriptJob job = Job(source + "import time; time.sleep(0.05)\n");
  std::vector<double> memory;
  for (int i = 0; i < runs; ++i) {
    Counter sink([&] { memory.push_back(PrivateOfCall(runtime)); });
    RunOnce(runtime, job, sink);
  }
  Print(what + ", memory of the call that is its own", memory, "MiB", {"<= 8 MiB", 8});
}

double MegabytesOfUs() {
  long pages = 0;
  long resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

// What processes have used so far, those that they have waited for included; see proc(5).
struct Used {
  double milliseconds = 0;
  double faults = 0;

  explicit Used(const NativeRuntime& runtime) {
    for (const std::string& pid : {std::string("self"), std::to_string(runtime.ZygotePids()[0])}) {
      const std::string text = os::ReadSmallFile("/proc/" + pid + "/stat").value_or("");
      std::istringstream fields(text.substr(text.rfind(')') + 1));
      std::vector<std::string> field(std::istream_iterator<std::string>(fields), {});
      const bool own_children = pid != "self";  // ours are the zygote and the controls
      const auto at = [&](std::size_t number) { return std::atof(field.at(number - 3).c_str()); };
      faults += at(10) + (own_children ? at(11) : 0);
      milliseconds += (at(14) + at(15) + (own_children ? at(16) + at(17) : 0)) * 1000 /
                      static_cast<double>(::sysconf(_SC_CLK_TCK));
    }
  }
};

void Throughput(NativeRuntime& runtime, int callers, std::chrono::seconds time) {
  const ScriptJob job = Job(kPandas);
  std::atomic<int> calls{0};
  const double before = MegabytesOfUs();
  const Used used_before(runtime);
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<std::size_t>(callers));
    for (int i = 0; i < callers; ++i) {
      threads.emplace_back([&] {
        while (Clock::now() - begin < time) {
          Counter sink;
          RunOnce(runtime, job, sink);
          ++calls;
        }
      });
    }
  }
  const double rate = calls * 1000 / Milliseconds(begin);
  fmt::print(
      "{{\"what\":\"pandas one-liners of {} callers at once (memory {:+.1f} MB)\",\"value\":{:.0f},"
      "\"unit\":\"calls/s\",\"target\":\">= 350 calls/s\",\"ok\":{}}}\n",
      callers, MegabytesOfUs() - before, rate, rate >= 350);
  const Used used(runtime);
  fmt::print(
      "{{\"what\":\"processor time of each, of all processes ({:.0f} page faults)\","
      "\"value\":{:.2f},\"unit\":\"ms\"}}\n",
      (used.faults - used_before.faults) / calls,
      (used.milliseconds - used_before.milliseconds) / calls);
}

double Fresh(const std::string& root_directory, int runs) {
  const jail::Root root({.directory = root_directory});
  const auto filter = os::BuildFilter(jail::ZygoteSyscalls(std::nullopt), EPERM);
  auto channel = os::MakeSocketPair(1 << 16);
  if (!filter || !channel) Give("no filter or channel");
  const std::string source = std::string("def done(x): pass\n") + kPandas;
  std::vector<double> wall;
  for (int i = 0; i < runs; ++i) {
    const auto begin = Clock::now();
    auto jailed = jail::SpawnInRoot({.root = &root,
                                     .program = "/usr/bin/python3",
                                     .arguments = {"python3", "-I", "-B", "-c", source},
                                     .environment = {"OPENBLAS_NUM_THREADS=1"},
                                     .channel = channel->second.get(),
                                     .filter = *filter});
    if (!jailed) Give(jailed.error().message);
    const auto status = jailed->process.Wait(std::chrono::seconds(60));
    if (!status || status->code != 0 || status->signal != 0) Give("the control failed");
    wall.push_back(Milliseconds(begin));
  }
  return Print("pandas one-liner, CPython started afresh in the jail", wall, "ms");
}

void Run(const std::string& root, int runs, std::chrono::seconds time) {
  NativeOptions options;
  options.root = root;
  options.tenant = "bench";
  options.sets = {{.name = "pandas", .imports = {"numpy", "pandas"}}};
  auto runtime = NativeRuntime::Create(options);
  if (!runtime) Give(runtime.error().message);
  if (auto prepared = (*runtime)->Prepare(); !prepared) Give(prepared.error().message);
  const double fresh = Fresh(root, std::max(runs / 20, 3));
  Warm(**runtime, "empty script", "done(1)\n", runs);
  Warm(**runtime, "pandas one-liner", kPandas, runs, {"<= 8 ms, >= 40 times as fast", 8},
       {"CPython started afresh in the same jail", fresh});
  Warm(**runtime, "pandas groupby of 1,000 rows", kGroupBy, runs);
  Memory(**runtime, "pandas one-liner", kPandas, std::max(runs / 4, 5));
  Throughput(**runtime, 2, time);
}

}  // namespace
}  // namespace caisson::isolate::native

int main(int argc, char** argv) {
  const char* root = std::getenv("CAISSON_NATIVE_ROOT");
  if (root == nullptr) {
    fmt::print(stderr, "native_bench: CAISSON_NATIVE_ROOT names no root file system\n");
    return 77;
  }
  caisson::isolate::native::Run(root, argc > 1 ? std::atoi(argv[1]) : 200,
                                std::chrono::seconds(argc > 2 ? std::atoi(argv[2]) : 10));
}
