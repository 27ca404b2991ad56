// SPDX-License-Identifier: Apache-2.0
#include "egress/shared_networks.h"

#include <fmt/format.h>

#include <algorithm>

#include "errors/egress.h"

namespace caisson::egress {
namespace {

std::unexpected<Status> Bad(const std::string& what) {
  return Fail(errors::kEgressBadNetwork, what);
}

}  // namespace

bool IsSharedNetworkId(std::string_view id) {
  return !id.empty() && id.size() <= kMaxSharedNetworkId && std::ranges::all_of(id, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '/';
  });
}

Result<SharedNetworks::Change> SharedNetworks::Plan(std::uint32_t address,
                                                    const std::set<std::string>& networks) const {
  if (networks.size() > kMaxSharedNetworks) {
    return Bad(fmt::format("a machine is in {} networks at most", kMaxSharedNetworks));
  }
  std::set<std::uint32_t> peers;
  for (const std::string& id : networks) {
    if (!IsSharedNetworkId(id)) {
      return Bad(fmt::format("the id of a network has 1 to {} characters of a-z, 0-9, -, _ and /",
                             kMaxSharedNetworkId));
    }
    const auto found = members_.find(id);
    if (found == members_.end()) continue;
    if (!found->second.contains(address) && found->second.size() >= kMaxNetworkMembers) {
      return Bad(fmt::format("a network has {} machines at most", kMaxNetworkMembers));
    }
    peers.insert(found->second.begin(), found->second.end());
  }
  peers.erase(address);
  Change change;
  for (const std::uint32_t peer : peers) {
    for (const Pair& pair : {Pair{address, peer}, Pair{peer, address}}) {
      if (!present_.contains(pair)) change.opened.push_back(pair);
    }
  }
  for (const Pair& pair : present_) {
    const bool is_its = pair.first == address || pair.second == address;
    if (is_its && !peers.contains(pair.first == address ? pair.second : pair.first))
      change.closed.push_back(pair);
  }
  return change;
}

void SharedNetworks::Do(std::uint32_t address, const std::set<std::string>& networks,
                        const Change& change) {
  for (const Pair& pair : change.closed) present_.erase(pair);
  present_.insert(change.opened.begin(), change.opened.end());
  for (auto it = members_.begin(); it != members_.end();) {
    it->second.erase(address);
    it = it->second.empty() ? members_.erase(it) : std::next(it);
  }
  for (const std::string& id : networks) members_[id].insert(address);
}

}  // namespace caisson::egress
