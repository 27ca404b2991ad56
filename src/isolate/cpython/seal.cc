// SPDX-License-Identifier: Apache-2.0
#include "isolate/cpython/seal.h"

#include <cstdint>

#include "wasm/written_pages.h"

namespace caisson::isolate::cpython {

std::vector<os::SyscallRule> SealSyscalls(int pagemap) {
  if (pagemap < 0) return {};
  constexpr std::uint64_t kLow32 = 0xffffffff;
  const os::ArgumentCheck is_pagemap{
      .index = 0, .mask = kLow32, .value = static_cast<std::uint32_t>(pagemap)};
  const os::ArgumentCheck is_scan{
      .index = 1, .mask = kLow32, .value = wasm::PagemapScanRequest() & kLow32};
  return {
      {"ioctl", "finds the pages that a run has written, to copy them back", {is_pagemap, is_scan}},
      {"pread64", "the same, on kernels without that ioctl", {is_pagemap}},
  };
}

}  // namespace caisson::isolate::cpython
