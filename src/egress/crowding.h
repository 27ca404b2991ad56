// SPDX-License-Identifier: Apache-2.0
// When the host's table of tracked connections is about to be full: every connection of a machine
// has an entry there as well as in the gateway's, and the kernel bounds each table alone, not what
// one namespace may put into another's.
#pragma once

#include <cstdint>
#include <optional>

namespace caisson::egress {

struct TrackedConnections {
  std::uint64_t count = 0;
  std::uint64_t most = 0;
};

// Of this process's network namespace; empty where nothing is tracked yet.
std::optional<TrackedConnections> ReadTracked();

// True from three quarters on, until less than a half is used.
bool IsCrowded(bool was_crowded, const TrackedConnections& tracked);

}  // namespace caisson::egress
