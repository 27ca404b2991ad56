// SPDX-License-Identifier: Apache-2.0
// compile_bench FILE…: compiles each file again and again on one thread and prints, a JSON line
// each, the least processor time that one compilation took. bench/compile_workflows.py runs it next
// to orcheo's compiler.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>

#include "workflow/compiler.h"

namespace caisson::workflow {
namespace {

constexpr int kPasses = 20;
constexpr double kPassSeconds = 0.02;

double Seconds(std::clock_t from) {
  return static_cast<double>(std::clock() - from) / CLOCKS_PER_SEC;
}

// Of one compilation, on average over a pass that is long enough for the clock.
double SecondsOfPass(const std::string& source) {
  int count = 0;
  const std::clock_t start = std::clock();
  do {
    if (!Compile(source).ok()) return -1;
    ++count;
  } while (Seconds(start) < kPassSeconds);
  return Seconds(start) / count;
}

int Measure(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string source{std::istreambuf_iterator<char>(file), {}};
  const CompileResult result = Compile(source);
  if (!result.ok()) {
    std::fprintf(stderr, "compile_bench: %s does not compile\n", path);
    return 1;
  }
  double best = SecondsOfPass(source);
  for (int i = 1; i < kPasses; ++i) best = std::min(best, SecondsOfPass(source));
  std::printf("{\"nodes\": %zu, \"bytes\": %zu, \"seconds\": %.9f}\n", result.graph->nodes.size(),
              source.size(), best);
  return 0;
}

}  // namespace
}  // namespace caisson::workflow

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (caisson::workflow::Measure(argv[i]) != 0) return 1;
  }
  return 0;
}
