// SPDX-License-Identifier: Apache-2.0
// From the bytes of a source file, or from text, to what the lexer takes: UTF-8 with LF line ends.
// Knows byte order marks and PEP 263 coding cookies. Stateless.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "python/parser.h"

namespace caisson::python {

// The text for the lexer: line ends unified, a last one added, and a NUL as its last character.
// `decoded` is filled with the text as written, without a byte order mark.
std::expected<std::string, SyntaxError> ReadSource(std::string_view source,
                                                   const ParseOptions& options,
                                                   std::string& decoded);

}  // namespace caisson::python
