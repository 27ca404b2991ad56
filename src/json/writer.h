// SPDX-License-Identifier: Apache-2.0
// Writes a Value as JSON text.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "json/value.h"

namespace caisson::json {

inline constexpr std::size_t kMaxWriteDepth = 4000;  // deeper values fail with json.too_deep

struct WriteOptions {
  int indent = 0;             // spaces per level, one item a line; 0 writes one line
  bool spaced = false;        // ", " and ": " on one line, as Python's json.dumps; else none
  bool ensure_ascii = false;  // \uXXXX for everything beyond ASCII
  bool sort_keys = false;     // by code point
};

// UTF-8 text. Doubles are written as Python's repr writes them (shortest round trip: 1.0, 1e+16,
// 5e-324, -0.0). Fails with json.not_representable on NaN, infinities and invalid UTF-8, and with
// json.too_deep; the message names the JSON path.
Result<std::string> Write(const Value& value, const WriteOptions& options = {});

// The same text in pieces of some 64 KiB that end between characters, so that no second copy of a
// large value is made. Writes twice: nothing is handed over before the whole value is known to have
// a JSON form. `take` gives false when it wants no more; that is not an error here.
using TakePiece = std::function<bool(std::string_view piece)>;
Result<void> WritePieces(const Value& value, const TakePiece& take,
                         const WriteOptions& options = {});

// Appends the compact text. False, with `out` as it was, when that is longer than `most` bytes or
// `value` has no JSON form.
bool AppendText(std::string& out, const Value& value, std::size_t most);
// Appends `text` as a JSON string; as AppendText.
bool AppendQuoted(std::string& out, std::string_view text, std::size_t most);

// Canonical bytes, the same for equal values: no spaces, keys sorted by code point, UTF-8.
Result<std::string> WriteCanonical(const Value& value);

// `text` as a JSON string in quotes; bytes that are no UTF-8 come out as U+FFFD. For messages and
// hand-made documents; Write is the strict way.
std::string Quote(std::string_view text);

// `value` as Python's repr(float) prints it; used wherever Python's text of a float is observable.
std::string FormatDouble(double value);

}  // namespace caisson::json
