// SPDX-License-Identifier: Apache-2.0
// What a script costs in a container, caller to outcome, beside bare runc with the same image and
// the same work, in turns. Prints JSON lines for bench/run.py; exit code 77 where it cannot run.
//
//   CAISSON_NATIVE_ROOT=<root file system with pandas> oci_bench [runs, default 40]
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "images/store.h"
#include "isolate/oci/oci.h"
#include "machine/oci/bundle.h"
#include "os/run_program.h"

namespace caisson::isolate::oci {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kEmpty = "pass\n";
constexpr const char* kPandas =
    "import pandas as pd\n"
    "x = float(pd.DataFrame({'a': [1, 2, 3], 'b': [4.0, 5.0, 6.0]}).sum().sum())\n";

class Ignore final : public ScriptSink {
 public:
  bool Take(const ScriptMessage&) override { return true; }
};

double Milliseconds(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

[[noreturn]] void Give(int code, const std::string& why) {
  fmt::print(stderr, "oci_bench: {}\n", why);
  std::exit(code);
}

// To the end of `runc run`, as whoever calls it by hand waits.
double Bare(const std::string& folder, const std::string& root, const std::string& source) {
  static int number = 0;
  const std::string name = "bare-" + std::to_string(::getpid()) + "-" + std::to_string(number++);
  const std::string bundle = folder + "/" + name;
  const images::Image image{.id = "bench", .root = root};
  // What a library's threads would cost is no part of the comparison.
  const std::vector<std::string> words = {
      "/usr/bin/python3", "-I", "-B", "-c",
      "import os\nos.environ['OPENBLAS_NUM_THREADS'] = '1'\n" + source};
  if (auto written = machine::oci::WriteBundle(image, words, bundle); !written) {
    Give(1, written.error().message);
  }
  const auto begin = Clock::now();
  const auto end = os::RunProgram(
      {.arguments = {"runc", "--root", folder + "/runc", "run", "--bundle", bundle, name}});
  const double took = Milliseconds(begin);
  if (!end || !end->succeeded()) Give(1, "bare runc failed: " + (end ? end->messages : ""));
  return took;
}

double Ours(OciRuntime& runtime, const std::string& source) {
  ScriptJob job;
  job.source = source + "done(1)\n";
  job.inputs = "{\"user\":{},\"documents\":[],\"artifacts\":[],\"sources\":[],\"tables\":{}}";
  Ignore sink;
  const auto begin = Clock::now();
  const auto outcome = runtime.Run(job, sink, {});
  const double took = Milliseconds(begin);
  if (!outcome) Give(1, outcome.error().message);
  if (!outcome->ok()) Give(1, outcome->message);
  return took;
}

void Compare(OciRuntime& runtime, const std::string& folder, const std::string& root,
             const std::string& what, const std::string& source, int runs) {
  std::vector<double> ours;
  std::vector<double> bare;
  for (int i = 0; i < runs; ++i) {
    ours.push_back(Ours(runtime, source));
    ::poll(nullptr, 0, 200);  // until it has been cleared away, which nobody waits for
    bare.push_back(Bare(folder, root, source));
    ::poll(nullptr, 0, 50);
  }
  const double ratio = Median(ours) / Median(bare);
  fmt::print(
      "{{\"what\":\"{} in a container, caller to outcome, p50\",\"value\":{:.1f},\"unit\":\"ms\","
      "\"control\":{:.1f},\"control_name\":\"runc run by hand\",\"ratio\":{:.2f},"
      "\"target\":\"<= 1.2 times\",\"ok\":{}}}\n",
      what, Median(ours), Median(bare), ratio, ratio <= 1.2);
  std::fflush(stdout);
}

void Run(const std::string& root, int runs) {
  auto runc = machine::oci::ProbeRuntime(machine::oci::RuntimeKind::kRunc);
  if (!runc) Give(77, runc.error().message);
  std::string folder = "/tmp/caisson-bench-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) Give(1, "no folder");
  {
    OciOptions options;
    options.runtime = *runc;
    options.state = folder + "/state";
    options.root = root;
    auto runtime = OciRuntime::Create(std::move(options));
    if (!runtime) Give(1, runtime.error().message);
    if (auto prepared = (*runtime)->Prepare(); !prepared) Give(1, prepared.error().message);
    Compare(**runtime, folder, root, "empty script", kEmpty, runs);
    Compare(**runtime, folder, root, "pandas one-liner", kPandas, runs);
  }
  std::error_code error;
  std::filesystem::remove_all(folder, error);
}

}  // namespace
}  // namespace caisson::isolate::oci

int main(int argc, char** argv) {
  const char* root = std::getenv("CAISSON_NATIVE_ROOT");
  if (root == nullptr) {
    fmt::print(stderr, "oci_bench: CAISSON_NATIVE_ROOT names no root file system\n");
    return 77;
  }
  caisson::isolate::oci::Run(root, argc > 1 ? std::atoi(argv[1]) : 40);
}
