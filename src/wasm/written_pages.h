// SPDX-License-Identifier: Apache-2.0
// Which pages of a private mapping were written since it was made: those that are the process's own
// copies and no longer the file's. Found by the PAGEMAP_SCAN call (Linux 6.7) or, where that is
// missing, by reading /proc/self/pagemap. No privilege needed. Thread-safe once opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::wasm {

enum class PageSearch : std::uint8_t { kScan, kRead, kNone };

struct PageRange {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
};

// The request number of PAGEMAP_SCAN, for a system call filter.
unsigned long PagemapScanRequest();

class WrittenPages {
 public:
  // Opens /proc/self/pagemap and tries each way on a mapping of its own, the best first, from
  // `best` on; what does not give the right answer is not used. kNone always can be had.
  static WrittenPages Open(PageSearch best = PageSearch::kScan);

  PageSearch way() const { return way_; }
  // For a seal that must allow the call on it; -1 when there is none.
  int descriptor() const { return pagemap_.get(); }

  // The written pages of [begin, begin + bytes), in order, neighbours joined. Empty when the search
  // failed or there is none: then every page counts as written.
  std::optional<std::vector<PageRange>> Find(std::byte* begin, std::size_t bytes) const;

 private:
  bool Works() const;
  std::optional<std::vector<PageRange>> Scan(std::byte* begin, std::size_t bytes) const;
  std::optional<std::vector<PageRange>> Read(std::byte* begin, std::size_t bytes) const;

  os::UniqueFd pagemap_;
  PageSearch way_ = PageSearch::kNone;
};

}  // namespace caisson::wasm
