// SPDX-License-Identifier: Apache-2.0
// Who listens on a TCP port of the machine, as /proc/net has it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "agent/messages.h"

namespace caisson::agent::guest {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  static SocketAddress V4(std::uint32_t network_order, std::uint16_t port);
  static SocketAddress V6(const in6_addr& address, std::uint16_t port);
};

// Where to connect, in order.
std::vector<SocketAddress> Candidates(const DialRequest& request);
// The same for kPublic, from the texts of /proc/net/tcp and /proc/net/tcp6.
std::vector<SocketAddress> PublicListeners(std::string_view tcp, std::string_view tcp6,
                                           std::uint16_t port);

}  // namespace caisson::agent::guest
