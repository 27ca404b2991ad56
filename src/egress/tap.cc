// SPDX-License-Identifier: Apache-2.0
#include "egress/tap.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "os/syscall_error.h"

namespace caisson::egress {

Result<os::UniqueFd> MakeTap(const LinkEnd& end, std::optional<uid_t> owner) {
  CAISSON_ASSIGN(os::UniqueFd tap, os::OpenFile("/dev/net/tun", O_RDWR | O_NONBLOCK));
  ifreq request{};
  std::strncpy(request.ifr_name, end.name.c_str(), sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (::ioctl(tap.get(), TUNSETIFF, &request) != 0) return os::SyscallError("make a tap");
  if (::ioctl(tap.get(), TUNSETPERSIST, 1) != 0) return os::SyscallError("keep a tap");
  if (owner && ::ioctl(tap.get(), TUNSETOWNER, static_cast<unsigned long>(*owner)) != 0) {
    return os::SyscallError("give a tap away");
  }
  const os::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  request.ifr_hwaddr = {};
  request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  std::memcpy(request.ifr_hwaddr.sa_data, end.mac.data(), end.mac.size());
  if (!socket.valid() || ::ioctl(socket.get(), SIOCSIFHWADDR, &request) != 0) {
    return os::SyscallError("name a tap on the wire");
  }
  return tap;
}

std::string FormatMac(const Mac& mac) {
  std::string text;
  for (const std::uint8_t byte : mac)
    text += fmt::format("{}{:02x}", text.empty() ? "" : ":", byte);
  return text;
}

}  // namespace caisson::egress
