// SPDX-License-Identifier: Apache-2.0
// Which machines may talk to one another, because they are in a network together. No input or
// output: the packet filter holds the pairs of addresses that are said here, each in both orders.
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace caisson::egress {

inline constexpr std::size_t kMaxSharedNetworks = 16;  // of one machine
inline constexpr std::size_t kMaxNetworkMembers = 256;
inline constexpr std::size_t kMaxSharedNetworkId = 64;

// [a-z0-9-], and "/" and "_" for callers that put names before names; 1 to 64 characters.
bool IsSharedNetworkId(std::string_view id);

class SharedNetworks {
 public:
  using Pair = std::pair<std::uint32_t, std::uint32_t>;  // from, to

  // What the filter has already, at the start.
  void Know(const std::vector<Pair>& pairs) { present_.insert(pairs.begin(), pairs.end()); }

  struct Change {
    std::vector<Pair> opened;
    std::vector<Pair> closed;
    bool empty() const { return opened.empty() && closed.empty(); }
  };
  // What is to be changed so that the machine with this address is in these networks and no others.
  // Fails with egress.bad_network.
  Result<Change> Plan(std::uint32_t address, const std::set<std::string>& networks) const;
  // It was done.
  void Do(std::uint32_t address, const std::set<std::string>& networks, const Change& change);

 private:
  std::map<std::string, std::set<std::uint32_t>> members_;
  std::set<Pair> present_;
};

}  // namespace caisson::egress
