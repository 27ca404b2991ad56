// SPDX-License-Identifier: Apache-2.0
// Canonical Python source of an AST: 4-space indentation, LF, every string literal escaped onto one
// line, parentheses only where the grammar needs them. What it prints parses to the same AST
// (positions aside). The source contains ASCII only, except in identifiers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "python/ast.h"

namespace caisson::python {

// Maps printed lines back to the author's: element i is the source line of the statement (or
// clause) that printed line i+1 starts or continues.
struct PrintedSource {
  std::string text;
  std::vector<std::uint32_t> source_lines;
};

PrintedSource Print(List<Stmt*> body, int indent = 0);
std::string Print(const Module& module);
std::string Print(const Expr& expr);

}  // namespace caisson::python
