// SPDX-License-Identifier: Apache-2.0
// One transaction of nf_tables, as netlink messages: the few kinds of objects that a machine's
// rules are made of, in the table of the gateway. Built in memory; PacketFilter commits it. The
// rules that are the same for all machines are text (egress/ruleset.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "egress/address.h"
#include "os/netlink.h"

namespace caisson::egress {

enum class Side : std::uint8_t { kSource, kDestination };  // of a packet
enum class FlowState : std::uint8_t { kNew, kOpen };  // kOpen: answered, or related to such a one

class FilterBatch {
 public:
  // Adding what is there already is fine, deleting what is not fails the transaction.
  void AddChain(const std::string& name);
  void DeleteChain(const std::string& name);  // with its rules
  void AddCounter(const std::string& name, std::uint64_t packets = 0);
  void DeleteCounter(const std::string& name);
  // What it has counted stays when it is there already.
  void AddQuota(const std::string& name, std::uint64_t over_bytes);
  void DeleteQuota(const std::string& name);
  void AddAddressSet(const std::string& name);  // ranges of addresses
  void AddPortSet(const std::string& name);     // ranges of addresses, each with a port
  void AddPinSet(const std::string& name, std::uint32_t size);  // addresses, each with a port
  void DeleteSet(const std::string& name);

  // Packets whose address is in the set go to `target`, for good.
  void AddAddressRule(const std::string& chain, Side side, const std::string& set,
                      const std::string& target);
  // The same by address and port; no ICMP.
  void AddPortRule(const std::string& chain, Side side, const std::string& set,
                   const std::string& target);

  // The same where the packet's connection is in one of the states.
  void AddPortRule(const std::string& chain, Side side, FlowState state, const std::string& set,
                   const std::string& target);
  // By the address and port that its connection was opened to, before any translation.
  void AddOriginalRule(const std::string& chain, const std::string& set, const std::string& target);
  // Whatever comes here; what `target` does not decide comes back.
  void AddJumpRule(const std::string& chain, const std::string& target);

  void FlushSet(const std::string& name);
  void AddRanges(const std::string& set, const std::vector<Range>& ranges);  // apart, by address
  void AddRanges(const std::string& set, const std::vector<Range>& ranges, std::uint16_t port);
  // Elements of sets and maps over single addresses.
  void AddAddress(const std::string& set, std::uint32_t address);
  void AddJump(const std::string& map, std::uint32_t address, const std::string& chain);
  void AddObject(const std::string& map, std::uint32_t address, const std::string& object);
  void DeleteAddress(const std::string& set_or_map, std::uint32_t address);
  // An element of a set over a link's name and an address.
  void AddSource(const std::string& set, const std::string& link, std::uint32_t address);
  void DeleteSource(const std::string& set, const std::string& link, std::uint32_t address);
  // Elements of a set of pins. One that is there already keeps its lifetime: delete it first.
  struct Pin {
    std::uint32_t address = 0;
    std::uint16_t port = 0;
    std::chrono::milliseconds lifetime{0};
  };
  void AddPins(const std::string& set, std::span<const Pin> pins);
  void DeletePins(const std::string& set, std::span<const Pin> pins);
  // Elements of a set over two addresses.
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  void AddPairs(const std::string& set, std::span<const Pair> pairs);
  void DeletePairs(const std::string& set, std::span<const Pair> pairs);

  std::span<const os::NetlinkMessage> messages() const { return messages_; }

 private:
  os::NetlinkMessage& Message(unsigned type, std::uint16_t flags);
  void Named(unsigned type, std::uint16_t table_attribute, std::uint16_t name_attribute,
             const std::string& name);
  void AddElements(unsigned type, const std::string& set, std::size_t count,
                   const std::function<void(os::NetlinkMessage&, std::size_t)>& put);
  void AddRule(const std::string& chain,
               const std::function<void(os::NetlinkMessage&)>& expressions);
  void PutPairs(unsigned type, const std::string& set, std::span<const Pair> pairs);
  void DeleteObject(std::uint32_t kind, const std::string& name);
  os::NetlinkMessage& AddSet(const std::string& name, std::uint32_t flags, std::uint32_t type,
                             std::uint32_t length);

  std::vector<os::NetlinkMessage> messages_;
  std::uint32_t set_id_ = 0;
};

}  // namespace caisson::egress
