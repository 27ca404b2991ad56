// SPDX-License-Identifier: Apache-2.0
// Canonical Python source of an AST: 4-space indentation, LF, every string literal escaped onto one
// line, parentheses only where the grammar needs them. What it prints parses to the same AST
// (positions aside). The source contains ASCII only, except in identifiers. Chains of operators,
// calls and elif may be of any length; other nesting is bounded by who made the tree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "python/ast.h"

namespace caisson::python {

// Maps printed lines back to the author's: element i is the source line of the statement (or
// clause) that printed line i+1 is; `else` and `finally`, which have no position, get that of what
// follows.
struct PrintedSource {
  std::string text;
  std::vector<std::uint32_t> source_lines;
};

// `indent` counts levels of four spaces. Every printed line ends in LF. A block without statements,
// which no source has, is printed as `pass`, with 0 for its line.
PrintedSource Print(List<Stmt*> body, int indent = 0);
std::string Print(const Module& module);
// As it can stand in brackets or an argument list: a tuple, yield or walrus is parenthesised.
std::string Print(const Expr& expr);

}  // namespace caisson::python
