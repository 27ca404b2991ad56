// SPDX-License-Identifier: Apache-2.0
// How the printer spells identifiers, numbers and string contents. ASCII only, except identifiers
// that the author wrote otherwise. Appends to the caller's string, keeps nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "python/ast.h"

namespace caisson::python {

// What has to be hidden inside a quoted text besides the quote, backslashes and unprintables.
struct Escaping {
  char quote = '\'';
  std::string_view as_hex;     // ASCII characters written as \xNN
  bool double_braces = false;  // braces written twice, as in the text of an f-string
};

// `text` as UTF-8 (WTF-8 for lone surrogates) without the surrounding quotes.
void AppendEscapedText(std::string& out, std::string_view text, const Escaping& escaping);
void AppendEscapedBytes(std::string& out, std::string_view bytes, const Escaping& escaping);

// The quote that needs fewer escapes, as Python's repr chooses.
char PreferredQuote(std::string_view text);

// A name, dotted or not. A part that is spelled like a keyword (the parser gets there only by NFKC
// normalisation) is written so that it normalises to itself again.
void AppendIdentifier(std::string& out, std::string_view name);

// An int, float or complex constant; infinity as 1e309. Negative ones have a leading minus.
void AppendNumber(std::string& out, const Constant& constant);
bool IsNumber(const Constant& constant);
bool IsNegativeNumber(const Constant& constant);

}  // namespace caisson::python
