// SPDX-License-Identifier: Apache-2.0
// Compiles one source per line of standard input, {"source": text}, and answers each with a line:
// what ReportJson gives. With --time N it compiles each N times and adds "seconds", the best one.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>

#include "json/reader.h"
#include "json/writer.h"
#include "report_json.h"

namespace caisson::workflow {
namespace {

double BestSeconds(const std::string& source, int repetitions) {
  double best = 1e9;
  for (int i = 0; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const CompileResult result = Compile(source);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (!result.ok()) return -1;
    best = std::min(best, taken.count());
  }
  return best;
}

int Answer(const std::string& line, int repetitions) {
  const Result<json::Value> request = json::Read(line);
  const json::Value* source = request ? request->Find("source") : nullptr;
  if (source == nullptr || !source->is_string()) {
    std::fputs("compile_tool: each line must be {\"source\": text}\n", stderr);
    return 1;
  }
  json::Value report = ReportJson(Compile(source->as_string()));
  if (repetitions > 0) {
    report.mutable_object().Set("seconds", BestSeconds(source->as_string(), repetitions));
  }
  const Result<std::string> text = json::Write(report, {.ensure_ascii = true});
  if (!text) {
    std::fprintf(stderr, "compile_tool: %s\n", text.error().message.c_str());
    return 1;
  }
  std::cout << *text << std::endl;
  return 0;
}

int Main(int argc, char** argv) {
  const int repetitions =
      argc == 3 && std::string_view(argv[1]) == "--time" ? std::atoi(argv[2]) : 0;
  for (std::string line; std::getline(std::cin, line);) {
    if (const int status = Answer(line, repetitions); status != 0) return status;
  }
  return 0;
}

}  // namespace
}  // namespace caisson::workflow

int main(int argc, char** argv) { return caisson::workflow::Main(argc, argv); }
