// SPDX-License-Identifier: Apache-2.0
// Reads JSON text (RFC 8259, UTF-8, strict) into a Value. Integers keep every digit. Reads nothing
// that is not JSON: no NaN, no byte order mark, no trailing text, no lone surrogates; a number
// beyond the range of doubles is refused. simdjson does the parsing, over a copy of the text; every
// value is visited, so that nothing goes unchecked. Stateless, and does not recurse.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "json/value.h"

namespace caisson::json {

struct ReadOptions {
  std::size_t max_bytes = 256u << 20;     // never more than 4 GiB
  std::size_t max_depth = 1000;           // nesting of arrays and objects
  std::size_t max_integer_digits = 4300;  // more fail with json.too_large
  bool reject_duplicate_keys = false;     // else the last one wins and keeps the first one's place
};

// Fails with json.syntax, json.too_deep, json.too_large or json.duplicate_key. The message names
// the line and column (span: byte column) and, inside a document, the JSON path ("$.nodes[3].id").
Result<Value> Read(std::string_view text, const ReadOptions& options = {});

}  // namespace caisson::json
