// SPDX-License-Identifier: Apache-2.0
// The texts that nft gets: what stands in the gateway's filter, and what is changed there for one
// machine. Pure functions; docs/network.md explains the rules. Names that end in a number belong to
// the machine with that index.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "egress/policy.h"

namespace caisson::egress {

inline constexpr const char* kTable = "caisson";
inline constexpr const char* kGatewayUplink = "up";
inline constexpr std::uint64_t kNoCap = std::uint64_t{1} << 62;
// New connections of one machine that may be tracked at once.
inline constexpr unsigned kMaxFlows = 8192;

std::string LinkName(std::uint32_t index);         // "m7"
std::string SentCounter(std::uint32_t index);      // "sent7"
std::string ReceivedCounter(std::uint32_t index);  // "received7"

struct Resolver {
  std::uint32_t inside = 0;   // the address that machines ask
  std::uint32_t outside = 0;  // where the question goes
  bool operator==(const Resolver&) const = default;
};

struct GatewayRules {
  std::vector<Resolver> resolvers;
};
// The whole table, as `nft -f` takes it: replaces one that is there. Nothing is open in it.
std::string GatewayText(const GatewayRules& rules);
// A counter that stands in the table of exactly this text.
std::string VersionMark(const GatewayRules& rules);

struct HostRules {
  std::string uplink;  // the host's end of the link to the gateway
  Range transit;       // addresses of that link
  std::vector<std::uint32_t> resolvers;
  bool forwards_only_ours = false;  // forwarding was switched on by us: for nothing else
};
std::string HostText(const HostRules& rules);
std::string HostTable(const std::string& uplink);

struct MachineRules {
  std::uint32_t index = 0;
  std::uint32_t address = 0;
  const Policy& policy;
  std::uint64_t cap_bytes = kNoCap;  // of what it sends; beyond, nothing goes out
};
// Makes or replaces all that belongs to the machine, in one transaction.
std::string MachineCommands(const MachineRules& rules);
// Takes it all away; fine when it is not there.
std::string RemovalCommands(std::uint32_t index, std::uint32_t address);

}  // namespace caisson::egress
