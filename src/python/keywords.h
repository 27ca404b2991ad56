// SPDX-License-Identifier: Apache-2.0
// Keywords and operators of Python 3.12 by their spelling. Stateless.
#pragma once

#include <string_view>
#include <utility>

#include "python/token.h"

namespace caisson::python {

// kName when `word` is no keyword.
TokenKind FindKeyword(std::string_view word);
SoftKeyword FindSoftKeyword(std::string_view word);

// The longest operator that starts at `text`, and its length; {kUnknownOp, 1} when none does.
// `text` must be NUL-terminated.
std::pair<TokenKind, int> FindOperator(const char* text);

}  // namespace caisson::python
