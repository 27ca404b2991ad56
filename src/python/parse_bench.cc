// SPDX-License-Identifier: Apache-2.0
// parse_bench REPEAT < list-of-paths: reads every file into memory, parses all of them REPEAT times
// on one thread, and prints as JSON the least time that one pass took. bench/parse_stdlib.py runs
// it next to CPython's `ast.parse`.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "python/parser.h"

namespace caisson::python {
namespace {

std::vector<std::string> ReadFiles() {
  std::vector<std::string> sources;
  for (std::string path; std::getline(std::cin, path);) {
    std::ifstream file(path, std::ios::binary);
    sources.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return sources;
}

struct Pass {
  double seconds = 0;
  std::size_t refused = 0;
  std::size_t statements = 0;
};

Pass ParseAll(const std::vector<std::string>& sources) {
  Pass pass;
  const std::clock_t start = std::clock();
  for (const std::string& source : sources) {
    const auto tree = Parse(source);
    if (tree) {
      pass.statements += tree->module().body.size();
    } else {
      ++pass.refused;
    }
  }
  pass.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return pass;
}

int Main(int repeat) {
  const std::vector<std::string> sources = ReadFiles();
  std::size_t bytes = 0;
  for (const std::string& source : sources) bytes += source.size();
  Pass best = ParseAll(sources);
  for (int i = 1; i < repeat; ++i) {
    best.seconds = std::min(best.seconds, ParseAll(sources).seconds);
  }
  std::printf(
      "{\"files\": %zu, \"bytes\": %zu, \"refused\": %zu, \"statements\": %zu, "
      "\"seconds\": %.6f}\n",
      sources.size(), bytes, best.refused, best.statements, best.seconds);
  return 0;
}

}  // namespace
}  // namespace caisson::python

int main(int argc, char** argv) {
  return caisson::python::Main(argc > 1 ? std::max(1, std::atoi(argv[1])) : 3);
}
