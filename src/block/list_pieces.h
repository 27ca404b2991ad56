// SPDX-License-Identifier: Apache-2.0
// Cuts the items of a JSON list into pieces of a size, so that no list is one line in memory.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/reader.h"
#include "json/scanner.h"

namespace caisson::block {

struct ScannedText {
  json::ScanReport report;
  // Of a list: its items without the brackets, in pieces of at most the wished size unless a single
  // item is larger; empty for an empty list. Of anything else: empty.
  std::vector<std::string_view> pieces;
};

// Checks `text` on the way, as json::Scan does.
Result<ScannedText> ScanInPieces(std::string_view text, std::size_t piece_bytes,
                                 const json::ReadOptions& options);

}  // namespace caisson::block
