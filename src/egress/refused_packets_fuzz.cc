// SPDX-License-Identifier: Apache-2.0
// Any bytes as what the kernel tells of a refused packet: no crash, and ports only of TCP and UDP.
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "egress/refused_packets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto packet = caisson::egress::DecodeRefusedPacket(
      std::string_view(reinterpret_cast<const char*>(data), size));
  if (packet && packet->port != 0 && packet->protocol != IPPROTO_TCP &&
      packet->protocol != IPPROTO_UDP) {
    std::abort();
  }
  return 0;
}
