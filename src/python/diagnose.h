// SPDX-License-Identifier: Apache-2.0
// Which error a source deserves that the parser refused: message and place as CPython 3.12 gives
// them. CPython finds them by ordered choice with extra rules for common mistakes, so this parses
// the tokens once more in that manner; only failed parses pay for it. Stateless.
#pragma once

#include <cstddef>
#include <string_view>

#include "python/lexer.h"
#include "python/parser.h"

namespace caisson::python {

// Where the parser stopped.
struct Refusal {
  std::size_t statement;  // the first token of the outermost statement; those before it are valid
  const Token* token;
};

// The error of `text`, which was lexed to `lexed` and then refused.
SyntaxError Diagnose(std::string_view text, const LexResult& lexed, const Refusal& refusal);

// The error that CPython reports instead of `error`, which its parser raised with `reached` as the
// last token it had asked for: it then reads the rest of the text, and errors of the lexer go
// first.
SyntaxError PreferLexError(SyntaxError error, const LexResult& lexed, const Token& reached);

}  // namespace caisson::python
