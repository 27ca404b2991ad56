// SPDX-License-Identifier: Apache-2.0
// Character references of HTML text: decoding as the HTML standard (and Python's html.unescape)
// does it, and the five replacements that make text safe. Pure functions over UTF-8 text.
#pragma once

#include <string>
#include <string_view>

namespace caisson::nodes {

std::string HtmlUnescape(std::string_view text);
// & < > " ' become references.
std::string HtmlEscape(std::string_view text);

}  // namespace caisson::nodes
