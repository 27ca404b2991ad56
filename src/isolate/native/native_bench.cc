// SPDX-License-Identifier: Apache-2.0
// What a script costs in a warm zygote, beside the same script in an interpreter that is started
// afresh in the same jail. Prints JSON lines for bench/run.py.
//
//   CAISSON_NATIVE_ROOT=<root file system with pandas> native_bench [runs, default 200]
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "isolate/native/native.h"
#include "jail/interpreter_syscalls.h"
#include "jail/rooted.h"
#include "os/fd.h"
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

class Counter final : public ScriptSink {
 public:
  bool Take(const ScriptMessage& message) override {
    done += message.kind == MessageKind::kDone ? 1 : 0;
    return true;
  }
  int done = 0;
};

void Print(const std::string& what, std::vector<double> values, const char* unit) {
  std::ranges::sort(values);
  const auto at = [&values](double share) {
    return values[std::min(values.size() - 1,
                           static_cast<std::size_t>(share * static_cast<double>(values.size())))];
  };
  fmt::print(
      "{{\"what\":\"{}\",\"unit\":\"{}\",\"n\":{},\"p50\":{:.3f},\"p99\":{:.3f},"
      "\"min\":{:.3f}}}\n",
      what, unit, values.size(), at(0.5), at(0.99), values.front());
  std::fflush(stdout);
}

double Milliseconds(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

[[noreturn]] void Give(const std::string& why) {
  fmt::print(stderr, "native_bench: {}\n", why);
  std::exit(1);
}

void Warm(NativeRuntime& runtime, const std::string& what, const std::string& source, int runs) {
  ScriptJob job;
  job.source = source;
  job.inputs = "{\"user\":{},\"documents\":[],\"artifacts\":[],\"sources\":[],\"tables\":{}}";
  job.imports = {"numpy", "pandas"};
  std::vector<double> wall;
  std::vector<double> cpu;
  std::vector<double> memory;
  for (int i = 0; i < runs; ++i) {
    // As requests come: one after the other, and not at once.
    ::poll(nullptr, 0, 20);
    Counter sink;
    const auto begin = Clock::now();
    const auto outcome = runtime.Run(job, sink, {});
    wall.push_back(Milliseconds(begin));
    if (!outcome) Give(outcome.error().message);
    if (!outcome->ok() || sink.done != 1) Give(outcome->message);
    cpu.push_back(std::chrono::duration<double, std::milli>(outcome->cpu).count());
    memory.push_back(static_cast<double>(outcome->usage.memory_bytes) / (1 << 20));
  }
  Print(what + ", warm zygote, to the outcome", wall, "ms");
  Print(what + ", warm zygote, processor time of the script", cpu, "ms");
  Print(what + ", memory of the call that is its own", memory, "MiB");
}

void Fresh(const std::string& root_directory, int runs) {
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
  Print("pandas one-liner, CPython started afresh in the jail", wall, "ms");
}

void Run(const std::string& root, int runs) {
  NativeOptions options;
  options.root = root;
  options.tenant = "bench";
  options.sets = {{.name = "pandas", .imports = {"numpy", "pandas"}}};
  auto runtime = NativeRuntime::Create(options);
  if (!runtime) Give(runtime.error().message);
  if (auto prepared = (*runtime)->Prepare(); !prepared) Give(prepared.error().message);
  Fresh(root, std::max(runs / 20, 3));
  Warm(**runtime, "empty script", "done(1)\n", runs);
  Warm(**runtime, "pandas one-liner", kPandas, runs);
  Warm(**runtime, "pandas groupby of 1,000 rows", kGroupBy, runs);
}

}  // namespace
}  // namespace caisson::isolate::native

int main(int argc, char** argv) {
  const char* root = std::getenv("CAISSON_NATIVE_ROOT");
  if (root == nullptr) {
    fmt::print(stderr, "native_bench: CAISSON_NATIVE_ROOT names no root file system\n");
    return 2;
  }
  caisson::isolate::native::Run(root, argc > 1 ? std::atoi(argv[1]) : 200);
}
