// SPDX-License-Identifier: Apache-2.0
// Any bytes as an IR: no crash, and what is accepted survives being written and read again, with
// every body ready to run.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <variant>

#include "workflow/body.h"
#include "workflow/loader.h"

namespace {

using caisson::workflow::CanonicalBytes;
using caisson::workflow::CodeNode;
using caisson::workflow::Graph;
using caisson::workflow::LoadIr;

void Require(bool holds) {
  if (!holds) std::abort();
}

void RequireRunnable(const Graph& graph) {
  for (const auto& node : graph.nodes) {
    if (const auto* code = std::get_if<CodeNode>(&node)) {
      Require(caisson::workflow::PrepareBody(*code).has_value());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto loaded = LoadIr(std::string_view(reinterpret_cast<const char*>(data), size));
  const bool refused =
      std::ranges::any_of(loaded.diagnostics, [](const caisson::workflow::Diagnostic& each) {
        return each.severity == caisson::workflow::Severity::kError;
      });
  Require((loaded.graph == nullptr) == refused);
  caisson::workflow::Render(loaded.diagnostics, "ir.json", {},
                            caisson::workflow::DiagnosticFormat::kText);
  if (refused) return 0;
  RequireRunnable(*loaded.graph);
  const auto bytes = CanonicalBytes(*loaded.graph);
  Require(bytes.has_value());
  const auto again = LoadIr(std::string_view(*bytes));
  Require(again.graph != nullptr);
  Require(CanonicalBytes(*again.graph).value_or("") == *bytes);
  return 0;
}
