// SPDX-License-Identifier: Apache-2.0
// The links of networks: pairs of virtual Ethernet devices, addresses, routes, neighbours, byte
// counts, by rtnetlink. Works in the namespace where it was opened. Not thread-safe per object.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "os/netlink.h"

namespace caisson::egress {

using Mac = std::array<std::uint8_t, 6>;

struct LinkEnd {
  std::string name;
  Mac mac;
};

// The end of a link in this namespace, set up: one address (/32), and one neighbour that is reached
// by it, with no question asked on the wire.
struct EndSetup {
  std::string name;
  std::uint32_t address = 0;
  std::uint32_t neighbour = 0;
  Mac neighbour_mac{};
  bool is_default_route = false;
};

class Links {
 public:
  static Result<Links> Open();

  // Makes a pair: `here` in this namespace, `there` in the namespace `peer_fd`. Both are down.
  // Fails with os.syscall.
  Result<void> MakePair(const LinkEnd& here, const LinkEnd& there, int peer_fd);
  Result<void> SetUp(const EndSetup& end);
  // Makes a bridge, which has no address and asks nothing on the wire, with these links, all up.
  Result<void> MakeBridge(const std::string& name, const std::vector<std::string>& links);
  // One that is not there is fine.
  Result<void> SetDown(const std::string& name);
  // Takes both ends away. One that is not there is fine.
  Result<void> Remove(const std::string& name);
  // The end that came up first learns of its other end later, and loses what it sends before. Makes
  // the kernel catch up; both ends must be up.
  Result<void> AwaitCarrier(const std::string& name);
  // 0 when there is no such link.
  int IndexOf(const std::string& name);
  // Every IPv4 address of this namespace.
  Result<std::vector<std::uint32_t>> Addresses();
  // The names of all links that begin with `prefix`.
  Result<std::vector<std::string>> Names(const std::string& prefix);

 private:
  explicit Links(os::NetlinkSocket socket) : socket_(std::move(socket)) {}

  os::NetlinkSocket socket_;
};

// Writes /proc/sys/net/`name` of the calling thread's network namespace.
Result<void> SetSysctl(const std::string& name, const std::string& value);

}  // namespace caisson::egress
