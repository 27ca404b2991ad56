// SPDX-License-Identifier: Apache-2.0
// Ids of this host that nothing but machines uses: each has a range for itself, whichever driver
// made it. What runs a machine has an id of its range, and so have its processes where they are
// processes of the host. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>

#include "base/status.h"

namespace caisson::machine {

inline constexpr std::uint32_t kIdsPerMachine = 65536;
// Ids that no distribution hands out (systemd's documentation lists what others use).
inline constexpr std::uint32_t kFirstHostId = 0x70000000;
inline constexpr std::uint32_t kMaxMachines = 4000;

class IdRanges {
 public:
  // The number of a range that is free. Fails with machine.full.
  Result<std::uint32_t> Take();
  // One that a machine of an earlier helper has.
  void Claim(std::uint32_t index);
  void Return(std::uint32_t index);

  static std::uint32_t FirstIdOf(std::uint32_t index) {
    return kFirstHostId + index * kIdsPerMachine;
  }

 private:
  std::mutex mutex_;
  std::set<std::uint32_t> used_;
  std::uint32_t next_ = 0;
};

}  // namespace caisson::machine
