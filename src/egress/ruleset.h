// SPDX-License-Identifier: Apache-2.0
// The rules that are the same for all machines: of the gateway's filter and of the host's, as text
// for nft. Pure functions; docs/network.md explains the rules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "egress/address.h"
#include "egress/filter_batch.h"

namespace caisson::egress {

inline constexpr const char* kTable = "caisson";
inline constexpr const char* kGatewayUplink = "up";
// New connections of one machine that may be tracked at once.
inline constexpr unsigned kMaxFlows = 8192;
// That it may open beyond those that it has, while the host's table is crowded (egress/crowding.h).
inline constexpr unsigned kMaxFlowsInACrowd = 256;

// The group of nfnetlink_log to which refused packets are told, some of them.
inline constexpr std::uint16_t kLogGroup = 7;

std::string LinkName(std::uint32_t index);  // "m7"
struct Resolver {
  std::uint32_t inside = 0;   // the address that machines ask
  std::uint32_t outside = 0;  // where the question goes
  bool operator==(const Resolver&) const = default;
};

// A whole table, as `nft -f` takes it: replaces one that is there. `mark` is the name of a counter
// that stands in the table of exactly this text.
struct RuleText {
  std::string text;
  std::string mark;
};
// Nothing is open in it.
RuleText GatewayText(const std::vector<Resolver>& resolvers);

struct HostRules {
  std::string uplink;  // the host's end of the link to the gateway
  Range transit;       // addresses of that link
  std::vector<std::uint32_t> resolvers;
  bool forwards_only_ours = false;  // forwarding was switched on by us: for nothing else
};
RuleText HostText(const HostRules& rules);
std::string HostTable(const std::string& uplink);

// While the host's table of tracked connections is crowded, and afterwards.
FilterBatch CrowdBatch(bool is_crowded);

// The addresses of the host, closed to all machines.
FilterBatch HostAddressesBatch(const std::vector<std::uint32_t>& addresses);

}  // namespace caisson::egress
