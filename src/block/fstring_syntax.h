// SPDX-License-Identifier: Apache-2.0
// f-strings that Python 3.11 cannot read (PEP 701): the quote of the string, a backslash, a comment
// or, in a string on one line, a line end inside a replacement field.
#pragma once

#include <string_view>
#include <vector>

#include "block/script_facts.h"

namespace caisson::block {

// `source` must parse. Adds to `found` in the order of the source.
void FindNewerFStrings(std::string_view source, std::vector<NewerSyntax>& found);

}  // namespace caisson::block
