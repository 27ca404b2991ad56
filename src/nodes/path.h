// SPDX-License-Identifier: Apache-2.0
// Dotted paths through values, in the two dialects that nodes speak. Segments are trimmed, empty
// ones ignored.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"

namespace caisson::nodes {

// At most kMaxPathSegments segments, else nodes.failed; none gives `when_empty` as the message.
Result<std::vector<std::string>> SplitPath(std::string_view path, std::string_view when_empty);

// How a segment picks an item of a list.
enum class ListIndex : std::uint8_t {
  kDigits,   // digits only; another text finds nothing
  kInteger,  // whatever int() takes; a negative number finds nothing
};

// The value at `segments` within `root`: nullptr when there is none. Fails when a segment counts as
// digits and is no number (int("²")).
Result<const json::Value*> Walk(const json::Value& root, const std::vector<std::string>& segments,
                                ListIndex list_index);

// Sets the value at `segments` within `target`; whatever on the way is no object is replaced by
// one.
void Assign(json::Object& target, const std::vector<std::string>& segments, json::Value value);

}  // namespace caisson::nodes
