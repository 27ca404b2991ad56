// SPDX-License-Identifier: Apache-2.0
// The bytes of an answer as text. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace caisson::nodes {

// UTF-8 in which every malformed sequence has become U+FFFD, as Python's "replace" does it.
std::string ReplaceMalformed(std::string_view bytes);

// `bytes` in the charset that a Content-Type header names, in UTF-8 when it names none or one that
// is not known; what cannot be decoded becomes U+FFFD.
std::string DecodeBody(std::string_view bytes, std::string_view content_type);

}  // namespace caisson::nodes
