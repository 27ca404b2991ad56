// SPDX-License-Identifier: Apache-2.0
// What the parts of the gateway (egress/network.h) have in common, for them alone.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/status.h"
#include "egress/links.h"

namespace caisson::egress {

inline constexpr Mac kGatewayMac = {0x02, 0xca, 0x15, 0x50, 0x00, 0x03};  // towards machines
inline constexpr std::uint32_t kFirstIndex = 16;  // below: the network, the gateway, its resolvers

// A kernel without IPv6 has none of its settings.
inline Result<void> SwitchOffIpv6(const std::string& link) {
  if (::access("/proc/sys/net/ipv6", F_OK) != 0) return {};
  return SetSysctl("ipv6/conf/" + link + "/disable_ipv6", "1");
}

}  // namespace caisson::egress
