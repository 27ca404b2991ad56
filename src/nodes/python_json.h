// SPDX-License-Identifier: Apache-2.0
// json.dumps of CPython, byte for byte.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "json/value.h"

namespace caisson::nodes {

// No `indent`: one line with ", " and ": ". An indent of zero or less breaks lines without
// indenting. Non-finite numbers are written as Python writes them (NaN, Infinity). Fails with
// nodes.failed when the text would exceed kMaxTextBytes.
inline constexpr std::size_t kMaxTextBytes = 64u << 20;
Result<std::string> PyJsonDumps(const json::Value& value, std::optional<std::int64_t> indent,
                                bool ensure_ascii);

}  // namespace caisson::nodes
