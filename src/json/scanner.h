// SPDX-License-Identifier: Apache-2.0
// Checks that a text is JSON exactly as Read would have it, and tells where the parts of its
// outermost array or object lie, without making a value: beside a copy of the text it takes four
// bytes per token and about a hundred per open level. For texts of strangers that are only passed
// on. Keys that occur twice are left alone.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "base/status.h"
#include "json/reader.h"
#include "json/value.h"

namespace caisson::json {

// One item of the outermost array, or one member of the outermost object.
struct ScannedChild {
  std::string_view key;   // as written, in its quotes; empty in an array
  std::string_view text;  // of the value, without space around it
  Value::Kind kind;       // every number is kDouble
  bool only_objects;      // what it holds, if anything, is objects
};

struct ScanReport {
  Value::Kind kind = Value::Kind::kNull;  // of the whole; every number is kDouble
  std::string_view text;                  // without space around it; all of it after an early end
  bool has_line_end = false;  // \n or \r stands between tokens (inside strings it cannot)
};

// `on_child` is called in order while the text is read, so also before an error is found; false
// ends the scan at once with what is known. `reject_duplicate_keys` must not be set. The views
// point into `text`. Fails as Read does.
Result<ScanReport> Scan(std::string_view text, const ReadOptions& options = {},
                        const std::function<bool(const ScannedChild&)>& on_child = {});

}  // namespace caisson::json
