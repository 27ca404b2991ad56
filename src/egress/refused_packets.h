// SPDX-License-Identifier: Apache-2.0
// Packets that the filter has refused and told of (nfnetlink_log): a socket for them, and what they
// are. The kernel tells; what is in the packets is the guests'. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "os/netlink.h"

namespace caisson::egress {

struct RefusedPacket {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint8_t protocol = 0;  // of IP
  std::uint16_t port = 0;     // that TCP and UDP go to
  bool operator==(const RefusedPacket&) const = default;
};

// `body`: of a message NFULNL_MSG_PACKET behind its netlink header. Empty when it is no IPv4 packet
// with a whole header; later fragments have no port.
std::optional<RefusedPacket> DecodeRefusedPacket(std::string_view body);

// "tcp", "udp", "icmp", or the number.
std::string ProtocolName(std::uint8_t protocol);

class RefusedPackets {
 public:
  // Those that the namespace tells to this group from now on. Fails with os.syscall.
  static Result<RefusedPackets> Listen(int namespace_fd, std::uint16_t group);

  int fd() const { return socket_.fd(); }  // for poll(2)
  // What has come. Some may be lost when many come.
  void Take(const std::function<void(const RefusedPacket&)>& take);

 private:
  explicit RefusedPackets(os::NetlinkSocket socket) : socket_(std::move(socket)) {}
  os::NetlinkSocket socket_;
};

}  // namespace caisson::egress
