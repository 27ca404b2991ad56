// SPDX-License-Identifier: Apache-2.0
// JSON text as the bytes that CPython's marshal.loads makes the same value of as json.loads would,
// several times as fast. The format is that of marshal's version 3, which Python 3.4 and all later
// ones read (Python/marshal.c, "marshal" in the library reference).
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "json/reader.h"

namespace caisson::json {

// Accepts what Read accepts, and fails as it does. A key that occurs twice gets its last value.
// `reject_duplicate_keys` must not be set. The result has at most two and a half times the bytes
// of the text (a list of digits), mostly fewer than it.
Result<std::string> ToMarshal(std::string_view text, const ReadOptions& options = {});

}  // namespace caisson::json
