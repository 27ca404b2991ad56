// SPDX-License-Identifier: Apache-2.0
#include "egress/links.h"

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>

#include <cerrno>

#include "os/fd.h"
#include "os/syscall_error.h"

namespace caisson::egress {
namespace {

using os::NetlinkAttributes;
using os::NetlinkMessage;

constexpr std::uint16_t kCreate = NLM_F_CREATE | NLM_F_EXCL;
constexpr std::uint16_t kReplace = NLM_F_CREATE | NLM_F_REPLACE;

NetlinkMessage StateMessage(int index, bool up) {
  NetlinkMessage message(RTM_NEWLINK, 0);
  ifinfomsg link{};
  link.ifi_index = index;
  link.ifi_flags = up ? IFF_UP : 0;
  link.ifi_change = IFF_UP;
  return std::move(message.Append(link));
}

NetlinkMessage AddressMessage(int index, std::uint32_t address) {
  NetlinkMessage message(RTM_NEWADDR, kReplace);
  ifaddrmsg header{};
  header.ifa_family = AF_INET;
  header.ifa_prefixlen = 32;
  header.ifa_index = static_cast<unsigned>(index);
  message.Append(header);
  message.Put(IFA_LOCAL, htonl(address));
  return std::move(message.Put(IFA_ADDRESS, htonl(address)));
}

NetlinkMessage NeighbourMessage(int index, std::uint32_t address, const Mac& mac) {
  NetlinkMessage message(RTM_NEWNEIGH, kReplace);
  ndmsg header{};
  header.ndm_family = AF_INET;
  header.ndm_ifindex = index;
  header.ndm_state = NUD_PERMANENT;
  message.Append(header);
  message.Put(NDA_DST, htonl(address));
  return std::move(message.Put(NDA_LLADDR, mac));
}

NetlinkMessage RouteMessage(int index, int prefix, std::uint32_t destination, std::uint32_t gateway,
                            std::uint32_t source) {
  NetlinkMessage message(RTM_NEWROUTE, kReplace);
  rtmsg header{};
  header.rtm_family = AF_INET;
  header.rtm_dst_len = static_cast<unsigned char>(prefix);
  header.rtm_table = RT_TABLE_MAIN;
  header.rtm_protocol = RTPROT_STATIC;
  header.rtm_scope = gateway == 0 ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  header.rtm_type = RTN_UNICAST;
  message.Append(header);
  if (prefix > 0) message.Put(RTA_DST, htonl(destination));
  if (gateway != 0) message.Put(RTA_GATEWAY, htonl(gateway));
  message.Put(RTA_PREFSRC, htonl(source));
  return std::move(message.Put(RTA_OIF, index));
}

}  // namespace

Result<Links> Links::Open() {
  CAISSON_ASSIGN(os::NetlinkSocket socket, os::NetlinkSocket::Open(NETLINK_ROUTE));
  return Links(std::move(socket));
}

Result<void> Links::MakePair(const LinkEnd& here, const LinkEnd& there, int peer_fd) {
  NetlinkMessage message(RTM_NEWLINK, kCreate);
  message.Append(ifinfomsg{});
  message.PutText(IFLA_IFNAME, here.name).Put(IFLA_ADDRESS, here.mac);
  const std::size_t info = message.Begin(IFLA_LINKINFO);
  message.PutText(IFLA_INFO_KIND, "veth");
  const std::size_t data = message.Begin(IFLA_INFO_DATA);
  const std::size_t peer = message.Begin(VETH_INFO_PEER);
  message.Append(ifinfomsg{});
  message.PutText(IFLA_IFNAME, there.name).Put(IFLA_ADDRESS, there.mac);
  message.Put(IFLA_NET_NS_FD, peer_fd);
  message.End(peer).End(data).End(info);
  return socket_.Do(message, "make the link " + here.name);
}

Result<void> Links::SetUp(const EndSetup& end) {
  const int index = IndexOf(end.name);
  if (index == 0) return os::SyscallError("find the link " + end.name, ENODEV);
  const std::string what = "set up the link " + end.name;
  CAISSON_TRY(socket_.Do(StateMessage(index, true), what));
  CAISSON_TRY(socket_.Do(AddressMessage(index, end.address), what));
  CAISSON_TRY(socket_.Do(NeighbourMessage(index, end.neighbour, end.neighbour_mac), what));
  CAISSON_TRY(socket_.Do(RouteMessage(index, 32, end.neighbour, 0, end.address), what));
  if (!end.is_default_route) return {};
  return socket_.Do(RouteMessage(index, 0, 0, end.neighbour, end.address), what);
}

Result<void> Links::MakeBridge(const std::string& name, const std::vector<std::string>& links) {
  const std::string what = "make the bridge " + name;
  NetlinkMessage message(RTM_NEWLINK, kCreate);
  message.Append(ifinfomsg{});
  message.PutText(IFLA_IFNAME, name);
  const std::size_t info = message.Begin(IFLA_LINKINFO);
  message.PutText(IFLA_INFO_KIND, "bridge").End(info);
  CAISSON_TRY(socket_.Do(message, what));
  const int bridge = IndexOf(name);
  for (const std::string& link : links) {
    NetlinkMessage join(RTM_NEWLINK, 0);
    ifinfomsg header{};
    header.ifi_index = IndexOf(link);
    header.ifi_flags = IFF_UP;
    header.ifi_change = IFF_UP;
    join.Append(header).Put(IFLA_MASTER, bridge);
    CAISSON_TRY(socket_.Do(join, what + " with " + link));
  }
  return socket_.Do(StateMessage(bridge, true), what);
}

Result<void> Links::SetDown(const std::string& name) {
  const int index = IndexOf(name);
  if (index == 0) return {};
  return socket_.Do(StateMessage(index, false), "set down the link " + name);
}

Result<void> Links::Remove(const std::string& name) {
  NetlinkMessage message(RTM_DELLINK, 0);
  message.Append(ifinfomsg{}).PutText(IFLA_IFNAME, name);
  const int error = socket_.Request(message);
  if (error != 0 && error != ENODEV) return os::SyscallError("remove the link " + name, error);
  return {};
}

// rtnl_getlink() runs the work that is due for the link (linkwatch_sync_dev) before it answers.
Result<void> Links::AwaitCarrier(const std::string& name) {
  if (IndexOf(name) == 0) return os::SyscallError("find the link " + name, ENODEV);
  return {};
}

int Links::IndexOf(const std::string& name) {
  NetlinkMessage message(RTM_GETLINK, 0);
  message.Append(ifinfomsg{}).PutText(IFLA_IFNAME, name);
  int index = 0;
  const int error = socket_.Request(message, [&](std::uint16_t, std::string_view body) {
    if (body.size() < sizeof(ifinfomsg)) return;
    ifinfomsg link;
    std::memcpy(&link, body.data(), sizeof(link));
    index = link.ifi_index;
  });
  return error == 0 ? index : 0;
}

Result<std::vector<std::uint32_t>> Links::Addresses() {
  NetlinkMessage message(RTM_GETADDR, NLM_F_DUMP);
  ifaddrmsg header{};
  header.ifa_family = AF_INET;
  message.Append(header);
  std::vector<std::uint32_t> addresses;
  const int error = socket_.Request(message, [&](std::uint16_t, std::string_view body) {
    std::uint32_t address = 0;
    if (body.size() < sizeof(ifaddrmsg)) return;
    if (NetlinkAttributes(body.substr(sizeof(ifaddrmsg))).Read(IFA_LOCAL, address)) {
      addresses.push_back(ntohl(address));
    }
  });
  if (error != 0) return os::SyscallError("list addresses", error);
  return addresses;
}

Result<std::vector<std::string>> Links::Names(const std::string& prefix) {
  NetlinkMessage message(RTM_GETLINK, NLM_F_DUMP);
  message.Append(ifinfomsg{});
  std::vector<std::string> names;
  const int error = socket_.Request(message, [&](std::uint16_t, std::string_view body) {
    if (body.size() < sizeof(ifinfomsg)) return;
    std::string name = NetlinkAttributes(body.substr(sizeof(ifinfomsg))).Text(IFLA_IFNAME);
    if (name.starts_with(prefix)) names.push_back(std::move(name));
  });
  if (error != 0) return os::SyscallError("list links", error);
  return names;
}

Result<void> SetSysctl(const std::string& name, const std::string& value) {
  return os::WriteSmallFile("/proc/sys/net/" + name, value);
}

}  // namespace caisson::egress
