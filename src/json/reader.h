// SPDX-License-Identifier: Apache-2.0
// Reads JSON text (RFC 8259, UTF-8, strict) into a Value. Built on simdjson; numbers keep their
// exact integers. Reads nothing that is not JSON: no NaN, no trailing text, no lone surrogates.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "json/value.h"

namespace caisson::json {

struct ReadOptions {
  std::size_t max_bytes = 256u << 20;
  std::size_t max_depth = 1000;      // nesting of arrays and objects
  std::size_t max_integer_digits = 4300;
  bool reject_duplicate_keys = false;  // else the last one wins and keeps the first one's place
};

// Fails with json.syntax, json.too_deep, json.too_large or json.duplicate_key. The message names
// the line and column (span: byte column) and, inside a document, the JSON path ("$.nodes[3].id").
Result<Value> Read(std::string_view text, const ReadOptions& options = {});

}  // namespace caisson::json
