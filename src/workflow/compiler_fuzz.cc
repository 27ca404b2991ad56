// SPDX-License-Identifier: Apache-2.0
// Any bytes: the compiler refuses them with an error, or makes an IR whose canonical bytes load
// again, as hostile, into the same IR.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "workflow/compiler.h"
#include "workflow/ir.h"
#include "workflow/loader.h"

namespace caisson::workflow {
namespace {

[[noreturn]] void Fail(const char* what, std::string_view text) {
  std::fprintf(stderr, "%s: %.*s\n", what, static_cast<int>(text.size()), text.data());
  std::abort();
}

void CheckErrors(const CompileResult& result) {
  for (const Diagnostic& diagnostic : result.diagnostics) {
    if (diagnostic.message.empty()) Fail("a diagnostic without a message", diagnostic.code.name);
    if (diagnostic.severity == Severity::kError) return;
  }
  Fail("refused without an error", "");
}

void CheckIr(const Graph& graph) {
  const Result<std::string> bytes = CanonicalBytes(graph);
  if (!bytes) Fail("the IR has no JSON", bytes.error().message);
  const LoadResult loaded = LoadIr(std::string_view(*bytes));
  if (loaded.graph == nullptr) {
    for (const Diagnostic& diagnostic : loaded.diagnostics) {
      if (diagnostic.severity == Severity::kError) Fail("the IR does not load", diagnostic.message);
    }
    Fail("the IR does not load", "");
  }
  if (CanonicalBytes(*loaded.graph).value_or("") != *bytes) Fail("the IR changed", *bytes);
}

void Check(std::string_view source) {
  const CompileResult result = Compile(source);
  if (!result.ok()) return CheckErrors(result);
  CheckIr(*result.graph);
}

}  // namespace
}  // namespace caisson::workflow

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  caisson::workflow::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
