// SPDX-License-Identifier: Apache-2.0
// The rules: what stands in the gateway's filter for all machines and in that of the host (text,
// for nft), and what is added and changed for one machine (netlink). Pure functions;
// docs/network.md explains the rules. Names that end in a number belong to the machine with that
// index.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "egress/filter_batch.h"
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

// The addresses of the host, closed to all machines.
FilterBatch HostAddressesBatch(const std::vector<std::uint32_t>& addresses);

struct MachineRules {
  std::uint32_t index = 0;
  std::uint32_t address = 0;
  const Policy& policy;
  std::uint64_t cap_bytes = kNoCap;  // of what it sends; beyond, nothing goes out
};
// Makes all that belongs to a machine.
FilterBatch MachineBatch(const MachineRules& rules);
// Replaces the policy of a machine that is there.
FilterBatch PolicyBatch(const MachineRules& rules);
// Takes away all of a machine that is there.
FilterBatch RemovalBatch(std::uint32_t index, std::uint32_t address);

}  // namespace caisson::egress
