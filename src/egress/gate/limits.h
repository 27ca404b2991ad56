// SPDX-License-Identifier: Apache-2.0
// How large the tables of the gate may be with so many descriptors, so that each finds its own when
// all are full: connections never take those that questions for names need. Arithmetic alone.
#pragma once

#include <algorithm>
#include <cstddef>

#include "egress/gate/flow.h"
#include "egress/gate/upstream.h"

namespace caisson::egress::gate {

struct Limits {
  std::size_t flows = 0;
  std::size_t flows_of_machine = 0;
  std::size_t lookups = 0;
  std::size_t name_streams = 0;
};

inline constexpr std::size_t kDescriptorsOfFlow = 6;  // two sockets and two pipes
// The channel, epoll, the sockets that listen, what a library holds, one that is to be refused.
inline constexpr std::size_t kOtherDescriptors = 32;

// Of `descriptors` that the process may have; `most` is never exceeded.
inline Limits LimitsFor(std::size_t descriptors, const Limits& most) {
  const std::size_t fixed = kOtherDescriptors + 2 * Pipes::kKept;
  const std::size_t left = std::max(descriptors, fixed) - fixed;
  Limits limits;
  limits.lookups = std::min(most.lookups, left / 4 / Upstream::kDescriptors);
  limits.name_streams = std::min(most.name_streams, left / 16);
  const std::size_t for_flows =
      left - limits.lookups * Upstream::kDescriptors - limits.name_streams;
  limits.flows = std::min(most.flows, for_flows / kDescriptorsOfFlow);
  limits.flows_of_machine = std::min(most.flows_of_machine, limits.flows / 2);
  return limits;
}

}  // namespace caisson::egress::gate
