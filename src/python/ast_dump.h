// SPDX-License-Identifier: Apache-2.0
// An AST as text, to compare trees: with each other and with CPython's (tests/python/ast_text.py
// writes the same of an `ast` tree). One line per node, in pre-order and CPython's field order:
//
//   Call@1:0-1:9 1 [2 [0
//
// is the class, the position (line:column-line:column, where the class has one), then each field:
// an identifier after a quote, an operator or context by name, `~` for none, `1` for a child, `[n`
// for a list of n children (with a row of 0 and 1 where some of them are none), `#n` for a plain
// number. Constants: `i` and hexadecimal, `f` and `j` (imaginary) and the bits of the double, `s`
// and `b` and the bytes in hexadecimal. Does not recurse.
#pragma once

#include <string>

#include "python/walk.h"

namespace caisson::python {

enum class DumpPositions : bool { kOmit, kInclude };

std::string DumpAst(NodeRef root, DumpPositions positions = DumpPositions::kInclude);

}  // namespace caisson::python
