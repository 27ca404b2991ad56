// SPDX-License-Identifier: Apache-2.0
#include "egress/packet_filter.h"

#include <arpa/inet.h>
#include <endian.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "errors/egress.h"
#include "os/network_namespace.h"
#include "os/syscall_error.h"

namespace caisson::egress {
namespace {

using os::NetlinkAttributes;
using os::NetlinkMessage;

// CTA_FILTER_F_CTA_IP_SRC of the kernel's own net/netfilter/nf_conntrack_netlink.c.
constexpr std::uint32_t kBySource = 1;

NetlinkMessage FilterMessage(unsigned type, std::uint8_t family) {
  NetlinkMessage message(static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type), 0);
  return std::move(message.Append(nfgenmsg{.nfgen_family = family, .version = NFNETLINK_V0}));
}

NetlinkMessage FlowMessage(unsigned type, std::uint16_t flags) {
  NetlinkMessage message(static_cast<std::uint16_t>(NFNL_SUBSYS_CTNETLINK << 8 | type), flags);
  return std::move(message.Append(nfgenmsg{.nfgen_family = AF_INET, .version = NFNETLINK_V0}));
}

NetlinkMessage Bracket(std::uint16_t type) {
  NetlinkMessage message(type, 0);
  return std::move(message.Append(nfgenmsg{
      .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)}));
}

NetlinkAttributes AttributesOf(std::string_view body) {
  return NetlinkAttributes(body.substr(std::min(sizeof(nfgenmsg), body.size())));
}

}  // namespace

Result<PacketFilter> PacketFilter::Open(int namespace_fd, const std::string& table) {
  std::optional<os::NetlinkSocket> socket;
  CAISSON_TRY(os::InNetworkNamespace(namespace_fd, [&]() -> Result<void> {
    CAISSON_ASSIGN(socket, os::NetlinkSocket::Open(NETLINK_NETFILTER));
    return {};
  }));
  return PacketFilter(table, *std::move(socket));
}

Result<std::uint32_t> PacketFilter::Generation() {
  std::uint32_t generation = 0;
  bool found = false;
  const int error = socket_.Request(
      FilterMessage(NFT_MSG_GETGEN, AF_UNSPEC), [&](std::uint16_t, std::string_view body) {
        found = AttributesOf(body).Read(NFTA_GEN_ID, generation) || found;
      });
  if (error == 0 && found) return generation;
  return Fail(errors::kEgressFilterUnknown,
              "the kernel does not tell the generation of the packet filter: " +
                  os::ErrnoText(error == 0 ? EPROTO : error));
}

Result<void> PacketFilter::Commit(const FilterBatch& batch) {
  CAISSON_ASSIGN(const std::uint32_t before, Generation());
  const int error = socket_.RequestAll(Bracket(NFNL_MSG_BATCH_BEGIN), batch.messages(),
                                       Bracket(NFNL_MSG_BATCH_END));
  CAISSON_ASSIGN(const std::uint32_t after, Generation());
  if (after != before) return {};
  return Fail(errors::kEgressFilterFailed, "the kernel refused new rules, the old ones stand: " +
                                               os::ErrnoText(error == 0 ? EPROTO : error));
}

Result<std::optional<PacketFilter::Count>> PacketFilter::ReadCounter(const std::string& name) {
  NetlinkMessage message = FilterMessage(NFT_MSG_GETOBJ, NFPROTO_INET);
  message.PutText(NFTA_OBJ_TABLE, table_).PutText(NFTA_OBJ_NAME, name);
  message.Put(NFTA_OBJ_TYPE, htonl(NFT_OBJECT_COUNTER));
  std::optional<Count> count;
  const int error = socket_.Request(message, [&](std::uint16_t, std::string_view body) {
    const NetlinkAttributes data(AttributesOf(body).Find(NFTA_OBJ_DATA));
    Count read;
    if (data.Read(NFTA_COUNTER_PACKETS, read.packets) &&
        data.Read(NFTA_COUNTER_BYTES, read.bytes)) {
      count = {.packets = be64toh(read.packets), .bytes = be64toh(read.bytes)};
    }
  });
  if (error == 0 || error == ENOENT) return count;
  return Fail(errors::kEgressFilterFailed,
              "read a counter of the packet filter: " + os::ErrnoText(error));
}

Result<std::vector<FilterBatch::Pair>> PacketFilter::ReadPairs(const std::string& set) {
  NetlinkMessage message(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETSETELEM, NLM_F_DUMP);
  message.Append(nfgenmsg{.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0});
  message.PutText(NFTA_SET_ELEM_LIST_TABLE, table_).PutText(NFTA_SET_ELEM_LIST_SET, set);
  std::vector<FilterBatch::Pair> pairs;
  const int error = socket_.Request(message, [&](std::uint16_t, std::string_view body) {
    std::string_view elements = AttributesOf(body).Find(NFTA_SET_ELEM_LIST_ELEMENTS);
    NetlinkAttributes(elements).ForEach(NFTA_LIST_ELEM, [&](std::string_view element) {
      const std::string_view key =
          NetlinkAttributes(NetlinkAttributes(element).Find(NFTA_SET_ELEM_KEY))
              .Find(NFTA_DATA_VALUE);
      std::array<std::uint32_t, 2> pair;
      if (key.size() != sizeof(pair)) return;
      std::memcpy(pair.data(), key.data(), sizeof(pair));
      pairs.emplace_back(ntohl(pair[0]), ntohl(pair[1]));
    });
  });
  if (error == 0 || error == ENOENT) return pairs;
  return Fail(errors::kEgressFilterFailed,
              "read a set of the packet filter: " + os::ErrnoText(error));
}

Result<void> PacketFilter::ForgetFlows(std::uint32_t address) {
  NetlinkMessage message = FlowMessage(IPCTNL_MSG_CT_DELETE, 0);
  const std::size_t tuple = message.Begin(CTA_TUPLE_ORIG);
  const std::size_t ip = message.Begin(CTA_TUPLE_IP);
  message.Put(CTA_IP_V4_SRC, htonl(address)).End(ip).End(tuple);
  const std::size_t filter = message.Begin(CTA_FILTER);
  message.Put(CTA_FILTER_ORIG_FLAGS, kBySource).Put(CTA_FILTER_REPLY_FLAGS, std::uint32_t{0});
  message.End(filter);
  const int error = socket_.Request(message);
  if (error == 0 || error == ENOENT) return {};
  return ForgetFlowsOneByOne(address);  // a kernel that does not filter takes the tuple for broken
}

Result<std::vector<std::string>> PacketFilter::FlowsOf(std::uint32_t address) {
  std::vector<std::string> tuples;
  const int error = socket_.Request(
      FlowMessage(IPCTNL_MSG_CT_GET, NLM_F_DUMP), [&](std::uint16_t, std::string_view body) {
        const std::string_view tuple = AttributesOf(body).Find(CTA_TUPLE_ORIG);
        std::uint32_t source = 0;
        NetlinkAttributes(NetlinkAttributes(tuple).Find(CTA_TUPLE_IP)).Read(CTA_IP_V4_SRC, source);
        if (source == htonl(address)) tuples.emplace_back(tuple);
      });
  if (error != 0) return os::SyscallError("list tracked connections", error);
  return tuples;
}

Result<void> PacketFilter::ForgetFlowsOneByOne(std::uint32_t address) {
  CAISSON_ASSIGN(const std::vector<std::string> tuples, FlowsOf(address));
  for (const std::string& tuple : tuples) {
    NetlinkMessage message = FlowMessage(IPCTNL_MSG_CT_DELETE, 0);
    message.PutBytes(CTA_TUPLE_ORIG | NLA_F_NESTED, tuple.data(), tuple.size());
    const int error = socket_.Request(message);
    if (error == 0 || error == ENOENT) continue;  // some end by themselves
    return os::SyscallError("forget the connections of " + FormatAddress(address), error);
  }
  return {};
}

Result<bool> PacketFilter::HasTable() {
  NetlinkMessage message = FilterMessage(NFT_MSG_GETTABLE, NFPROTO_INET);
  message.PutText(NFTA_TABLE_NAME, table_);
  const int error = socket_.Request(message);
  if (error == 0 || error == ENOENT) return error == 0;
  return Fail(errors::kEgressFilterFailed,
              "look for a table of the packet filter: " + os::ErrnoText(error));
}

}  // namespace caisson::egress
