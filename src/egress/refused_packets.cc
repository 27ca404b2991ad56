// SPDX-License-Identifier: Apache-2.0
#include "egress/refused_packets.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "os/network_namespace.h"

namespace caisson::egress {
namespace {

using os::NetlinkMessage;

constexpr std::uint32_t kCopiedBytes = 96;  // the longest header of IPv4, and ports
constexpr std::size_t kShortestHeader = 20;
constexpr std::uint16_t kFragmentOffset = 0x1fff;

unsigned ByteAt(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}
std::uint16_t NumberAt(std::string_view text, std::size_t at) {
  return static_cast<std::uint16_t>(ByteAt(text, at) << 8 | ByteAt(text, at + 1));
}
std::uint32_t AddressAt(std::string_view text, std::size_t at) {
  return static_cast<std::uint32_t>(NumberAt(text, at)) << 16 | NumberAt(text, at + 2);
}

NetlinkMessage Configuration(std::uint8_t family, std::uint16_t group) {
  NetlinkMessage message(NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG, 0);
  return std::move(message.Append(
      nfgenmsg{.nfgen_family = family, .version = NFNETLINK_V0, .res_id = htons(group)}));
}

}  // namespace

std::optional<RefusedPacket> DecodeRefusedPacket(std::string_view body) {
  if (body.size() < sizeof(nfgenmsg)) return std::nullopt;
  const std::string_view packet =
      os::NetlinkAttributes(body.substr(sizeof(nfgenmsg))).Find(NFULA_PAYLOAD);
  if (packet.size() < kShortestHeader || ByteAt(packet, 0) >> 4 != 4) return std::nullopt;
  const std::size_t header = (ByteAt(packet, 0) & 15) * std::size_t{4};
  if (header < kShortestHeader) return std::nullopt;
  RefusedPacket refused{.source = AddressAt(packet, 12),
                        .destination = AddressAt(packet, 16),
                        .protocol = static_cast<std::uint8_t>(ByteAt(packet, 9))};
  const bool has_ports = refused.protocol == IPPROTO_TCP || refused.protocol == IPPROTO_UDP;
  const bool is_first = (NumberAt(packet, 6) & kFragmentOffset) == 0;
  if (has_ports && is_first && packet.size() >= header + 4)
    refused.port = NumberAt(packet, header + 2);
  return refused;
}

std::string ProtocolName(std::uint8_t protocol) {
  switch (protocol) {
    case IPPROTO_TCP:
      return "tcp";
    case IPPROTO_UDP:
      return "udp";
    case IPPROTO_ICMP:
      return "icmp";
    default:
      return std::to_string(protocol);
  }
}

Result<RefusedPackets> RefusedPackets::Listen(int namespace_fd, std::uint16_t group) {
  std::optional<os::NetlinkSocket> socket;
  CAISSON_TRY(os::InNetworkNamespace(namespace_fd, [&]() -> Result<void> {
    CAISSON_ASSIGN(socket, os::NetlinkSocket::Open(NETLINK_NETFILTER));
    return {};
  }));
  NetlinkMessage bind = Configuration(AF_UNSPEC, group);
  bind.Put(NFULA_CFG_CMD, nfulnl_msg_config_cmd{.command = NFULNL_CFG_CMD_BIND});
  CAISSON_TRY(socket->Do(bind, "listen for refused packets"));
  NetlinkMessage mode = Configuration(AF_UNSPEC, group);
  nfulnl_msg_config_mode copied{};
  copied.copy_range = htonl(kCopiedBytes);
  copied.copy_mode = NFULNL_COPY_PACKET;
  mode.Put(NFULA_CFG_MODE, copied);
  mode.Put(NFULA_CFG_QTHRESH, htonl(1));  // each at once
  CAISSON_TRY(socket->Do(mode, "set up what is told of refused packets"));
  return RefusedPackets(*std::move(socket));
}

void RefusedPackets::Take(const std::function<void(const RefusedPacket&)>& take) {
  (void)socket_.TakeWaiting([&](std::uint16_t type, std::string_view body) {
    if (type != (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET)) return;
    if (const auto packet = DecodeRefusedPacket(body)) take(*packet);
  });
}

}  // namespace caisson::egress
