// SPDX-License-Identifier: Apache-2.0
// Names to addresses. An interface, since a test must say what a name resolves to, and when that
// changes. Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "http/public_address.h"

namespace caisson::http {

class Resolver {
 public:
  virtual ~Resolver() = default;
  // All addresses of `host` (a name, or an address without brackets), at least one. `give_up` is
  // asked every few milliseconds. Fails with outbound.unreachable, outbound.timed_out or
  // outbound.stopped.
  virtual Result<std::vector<IpAddress>> Resolve(const std::string& host,
                                                 std::chrono::steady_clock::time_point deadline,
                                                 const std::function<bool()>& give_up) = 0;
};

// The system's (getaddrinfo). A lookup that nobody waits for any longer goes on in its thread; at
// most kMostLookups are in progress in this process, more fail at once.
inline constexpr int kMostLookups = 64;
Resolver& SystemResolver();

}  // namespace caisson::http
