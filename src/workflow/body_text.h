// SPDX-License-Identifier: Apache-2.0
// The text of a body as it stands in the IR. It is data for people, hashes and the peer; what runs
// is made by PrepareBody (body.h).
#pragma once

#include <string>
#include <string_view>

#include "python/ast.h"

namespace caisson::workflow {

// The peer's text of the body of `run`: dedented lines of `source` (the whole file, as parsed), or
// the statements' segments when the body starts on the signature's line. Where that text would not
// mean the same as the AST (a decorated first statement, a body on the signature's last line, odd
// line separators, continuation lines shifted inside strings), the canonical printing instead.
std::string BodyText(const python::FunctionDef& run, std::string_view source);

}  // namespace caisson::workflow
