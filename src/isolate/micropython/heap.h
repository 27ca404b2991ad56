// SPDX-License-Identifier: Apache-2.0
// The guest's own heap as its allocation table shows it: two bits per block of 16 bytes.
#pragma once

#include <cstdint>

#include "isolate/micropython/guest_memory.h"

namespace caisson::isolate {

struct HeapUse {
  std::uint64_t used = 0;  // blocks
  std::uint64_t total = 0;
};
HeapUse CountHeap(const GuestMemory& memory);

// The address behind the last block in use; where the heap begins when none is.
std::uint64_t HeapUsedEnd(const GuestMemory& memory);

}  // namespace caisson::isolate
