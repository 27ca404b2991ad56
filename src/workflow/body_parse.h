// SPDX-License-Identifier: Apache-2.0
// Parses the text of a body, statements without their function, as the body of one. A text whose
// statements are all indented is taken as it stands: no line of it is touched, so no string
// changes.
#pragma once

#include <expected>
#include <string_view>

#include "python/parser.h"

namespace caisson::workflow {

struct ParsedBody {
  python::Tree tree;
  python::List<python::Stmt*> statements;
  std::uint32_t first_line = 1;  // line of `tree` that line 1 of the text is
};

// Fails with a SyntaxError whose span counts in the text's own lines.
std::expected<ParsedBody, python::SyntaxError> ParseBody(std::string_view text);

}  // namespace caisson::workflow
