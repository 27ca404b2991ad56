// SPDX-License-Identifier: Apache-2.0
#include "isolate/micropython/heap.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "isolate/micropython/layout.h"

namespace caisson::isolate {
namespace {

// Empty when the guest has overwritten its own words.
std::string_view Table(const GuestMemory& memory) {
  return memory.Bytes(memory.Word(layout::kTableStart), memory.Word(layout::kTableBytes));
}

}  // namespace

HeapUse CountHeap(const GuestMemory& memory) {
  HeapUse use;
  for (const char c : Table(memory)) {
    const auto entry = static_cast<std::uint8_t>(c);
    // A block is in use when either of its bits is set.
    use.used += static_cast<std::uint64_t>(
        std::popcount(static_cast<std::uint8_t>((entry | entry >> 1) & 0x55)));
    use.total += 4;
  }
  return use;
}

std::uint64_t HeapUsedEnd(const GuestMemory& memory) {
  const std::string_view table = Table(memory);
  const std::uint64_t pool = memory.Word(layout::kPoolStart);
  const std::size_t last = table.find_last_not_of('\0');
  if (last == std::string_view::npos) return pool;
  const auto entry = static_cast<std::uint8_t>(table[last]);
  const auto inside = static_cast<std::uint64_t>(std::bit_width(entry) - 1) / 2;
  return pool + (std::uint64_t{last} * 4 + inside + 1) * layout::kBlockBytes;
}

}  // namespace caisson::isolate
