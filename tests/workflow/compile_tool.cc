// SPDX-License-Identifier: Apache-2.0
// Compiles one source per line of standard input, {"source": text}, and answers each with a line:
// what ReportJson gives.
#include <cstdio>
#include <iostream>
#include <string>

#include "json/reader.h"
#include "json/writer.h"
#include "report_json.h"

namespace caisson::workflow {
namespace {

int Answer(const std::string& line) {
  const Result<json::Value> request = json::Read(line);
  const json::Value* source = request ? request->Find("source") : nullptr;
  if (source == nullptr || !source->is_string()) {
    std::fputs("compile_tool: each line must be {\"source\": text}\n", stderr);
    return 1;
  }
  const json::Value report = ReportJson(Compile(source->as_string()));
  const Result<std::string> text = json::Write(report, {.ensure_ascii = true});
  if (!text) {
    std::fprintf(stderr, "compile_tool: %s\n", text.error().message.c_str());
    return 1;
  }
  std::cout << *text << std::endl;
  return 0;
}

int Main() {
  for (std::string line; std::getline(std::cin, line);) {
    if (const int status = Answer(line); status != 0) return status;
  }
  return 0;
}

}  // namespace
}  // namespace caisson::workflow

int main() { return caisson::workflow::Main(); }
