// SPDX-License-Identifier: Apache-2.0
// Checks one value a line of standard input, [schema, value], and answers each with a line:
// {"ok": bool, "text": the violations} or {"error": code, "text": message}.
#include <cstdio>
#include <iostream>
#include <string>

#include "json/reader.h"
#include "json/schema.h"
#include "json/writer.h"

namespace caisson::json {
namespace {

Result<Verdict> Check(const Array& pair) {
  CAISSON_ASSIGN(const Schema schema, Schema::Compile(pair[0]));
  return schema.Check(pair[1]);
}

int Main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto pair = Read(line);
    if (!pair || !pair->is_array() || pair->as_array().size() != 2) {
      std::fputs("schema_tool: each line must be [schema, value]\n", stderr);
      return 1;
    }
    const auto verdict = Check(pair->as_array());
    const Object answer =
        verdict ? Object{{"ok", verdict->ok()}, {"text", verdict->Text()}}
                : Object{{"error", verdict.error().code.name}, {"text", verdict.error().message}};
    std::cout << Write(answer, {.ensure_ascii = true}).value_or("{}") << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace caisson::json

int main() { return caisson::json::Main(); }
