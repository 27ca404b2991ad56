// SPDX-License-Identifier: Apache-2.0
// Python 3.12 source to tokens, one pass, the whole text at once. The text must be UTF-8 with LF
// line ends, no NUL, and end in LF followed by one NUL that `text` does not count. Knows
// indentation and f-string modes; decodes no literal. The first error ends the stream with a kError
// token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "python/parser.h"
#include "python/token.h"

namespace caisson::python {

struct LexError {
  SyntaxError error;
  // CPython raises some errors while it tokenizes and leaves others to the parser, which notices
  // them only when it asks for that very token. Only the former override an earlier parser error,
  // and not when they lie inside an f-string.
  bool raised_by_lexer = true;
  // The text ended inside brackets or after a line continuation.
  bool at_end_of_input = false;
  bool in_fstring = false;
};

struct OpenBracket {
  char bracket;
  std::uint32_t line;
  std::uint32_t column;
};

struct LexResult {
  std::vector<Token> tokens;               // the last one is kEndMarker or kError
  LexError error;                          // of a kError
  std::vector<OpenBracket> open_brackets;  // where the stream ends, innermost last
};

LexResult Lex(std::string_view text);

}  // namespace caisson::python
