// SPDX-License-Identifier: Apache-2.0
// Which built-in type the guest's classes derive from. Each type is walked once, however the tree
// is knit, and a tree that the guest has tied into a knot ends, too. For one instance's memory
// while nothing runs in it.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "isolate/micropython/guest_memory.h"
#include "isolate/micropython/meter.h"

namespace caisson::isolate {

class ClassTree {
 public:
  ClassTree(const GuestMemory& memory, Meter& meter) : memory_(memory), meter_(meter) {}

  // The type itself when it is built in; 0 when it derives from none but `object`. Nothing when the
  // meter has run out.
  std::optional<std::uint32_t> NativeBase(std::uint32_t type);

 private:
  // A type whose bases are being walked.
  struct Visit {
    std::uint32_t type = 0;
    std::uint32_t bases = 0;  // address of the next one
    std::uint32_t left = 0;
  };
  std::optional<std::uint32_t> Known(std::uint32_t type) const;
  Visit Enter(std::uint32_t type) const;

  const GuestMemory& memory_;
  Meter& meter_;
  std::unordered_map<std::uint32_t, std::uint32_t> known_;
  std::vector<Visit> path_;
};

}  // namespace caisson::isolate
