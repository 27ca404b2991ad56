// SPDX-License-Identifier: Apache-2.0
// For random trees: what the printer prints parses to the same tree, and prints the same again.
#include <gtest/gtest.h>

#include <algorithm>

#include "python/ast_dump.h"
#include "python/parser.h"
#include "python/printer.h"
#include "random_ast.h"

namespace caisson::python {
namespace {

TEST(PrinterProperty, RandomTreesParseBackToThemselves) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Arena arena;
    const Module module = RandomAst(arena, seed).MakeModule();
    const std::string printed = Print(module);
    const auto parsed = Parse(printed, {.is_text = true});
    ASSERT_TRUE(parsed.has_value()) << "seed " << seed << ": " << parsed.error().message << " at "
                                    << parsed.error().span.line << " in\n"
                                    << printed;
    ASSERT_EQ(DumpAst(&module, DumpPositions::kOmit),
              DumpAst(&parsed->module(), DumpPositions::kOmit))
        << "seed " << seed << "\n"
        << printed;
    ASSERT_EQ(printed, Print(parsed->module())) << "seed " << seed;
  }
}

TEST(PrinterProperty, EveryLineHasAnEntryInTheLineMap) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Arena arena;
    const Module module = RandomAst(arena, seed).MakeModule();
    const PrintedSource printed = Print(module.body, 1);
    ASSERT_EQ(static_cast<std::ptrdiff_t>(printed.source_lines.size()),
              std::count(printed.text.begin(), printed.text.end(), '\n'));
  }
}

}  // namespace
}  // namespace caisson::python
