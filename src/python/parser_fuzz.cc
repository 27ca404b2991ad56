// SPDX-License-Identifier: Apache-2.0
// Any bytes: the parser refuses them or makes a tree that survives printing and parsing.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "python/ast_dump.h"
#include "python/parser.h"
#include "python/printer.h"

namespace caisson::python {
namespace {

[[noreturn]] void Fail(const char* what, std::string_view printed) {
  std::fprintf(stderr, "%s:\n%.*s\n", what, static_cast<int>(printed.size()), printed.data());
  std::abort();
}

void CheckError(const SyntaxError& error, std::string_view source) {
  if (error.message.empty()) Fail("an error without a message", source);
}

void CheckRoundTrip(const Module& module) {
  const PrintedSource printed = Print(module.body);
  const auto again = Parse(printed.text, {.is_text = true});
  if (!again) {
    // Canonical parentheses may nest deeper than the author's, up to the bound.
    if (again.error().type == SyntaxError::Type::kTooDeep) return;
    Fail(again.error().message.c_str(), printed.text);
  }
  if (DumpAst(&module, DumpPositions::kOmit) != DumpAst(&again->module(), DumpPositions::kOmit)) {
    Fail("the printed source parses to another tree", printed.text);
  }
  if (Print(again->module()) != printed.text) Fail("printing is not stable", printed.text);
}

void Check(std::string_view source, bool is_text) {
  const auto parsed = Parse(source, {.is_text = is_text});
  if (!parsed) return CheckError(parsed.error(), source);
  CheckRoundTrip(parsed->module());
}

}  // namespace
}  // namespace caisson::python

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  caisson::python::Check(source, true);
  caisson::python::Check(source, false);
  return 0;
}
