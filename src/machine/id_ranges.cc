// SPDX-License-Identifier: Apache-2.0
#include "machine/id_ranges.h"

#include <fmt/format.h>

#include "errors/machine.h"

namespace caisson::machine {

Result<std::uint32_t> IdRanges::Take() {
  const std::lock_guard lock(mutex_);
  // In turn, so that what is left of a machine meets the next one of its number late.
  for (std::uint32_t tried = 0; tried < kMaxMachines; ++tried) {
    const std::uint32_t index = next_;
    next_ = (next_ + 1) % kMaxMachines;
    if (used_.insert(index).second) return index;
  }
  return Fail(errors::kMachineFull,
              fmt::format("there are {} machines on this host, which is the most", kMaxMachines));
}

void IdRanges::Claim(std::uint32_t index) {
  const std::lock_guard lock(mutex_);
  used_.insert(index);
}

void IdRanges::Return(std::uint32_t index) {
  const std::lock_guard lock(mutex_);
  used_.erase(index);
}

}  // namespace caisson::machine
