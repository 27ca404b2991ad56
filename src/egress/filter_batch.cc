// SPDX-License-Identifier: Apache-2.0
#include "egress/filter_batch.h"

#include <arpa/inet.h>
#include <endian.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

#include "egress/ruleset.h"

namespace caisson::egress {
namespace {

using os::NetlinkMessage;

// What nft(8) shows keys as; the kernel does not care.
constexpr std::uint32_t kAddressType = 7;
constexpr std::uint32_t kPortType = 13;
constexpr std::uint32_t kTypeBits = 6;
// An attribute holds 64 KiB, and an element of a range less than 128 bytes.
constexpr std::size_t kElementsPerMessage = 400;

struct PortKey {
  std::uint32_t address;
  std::uint16_t port;
  std::uint16_t padding = 0;
};
struct SourceKey {
  std::array<char, IFNAMSIZ> link{};
  std::uint32_t address = 0;
};

struct PairKey {
  std::uint32_t first;
  std::uint32_t second;
};

PortKey KeyOf(std::uint32_t address, std::uint16_t port) { return {htonl(address), htons(port)}; }
SourceKey KeyOf(const std::string& link, std::uint32_t address) {
  SourceKey key;
  std::ranges::copy_n(link.begin(),
                      static_cast<std::ptrdiff_t>(std::min(link.size(), key.link.size())),
                      key.link.begin());
  key.address = htonl(address);
  return key;
}

void PutNumber(NetlinkMessage& message, std::uint16_t attribute, std::uint32_t number) {
  message.Put(attribute, htonl(number));
}

template <typename Key>
void PutKey(NetlinkMessage& message, std::uint16_t attribute, const Key& key) {
  const std::size_t data = message.Begin(attribute);
  message.Put(NFTA_DATA_VALUE, key).End(data);
}

void PutVerdict(NetlinkMessage& message, std::uint16_t attribute, int code,
                const std::string& chain) {
  const std::size_t data = message.Begin(attribute);
  const std::size_t verdict = message.Begin(NFTA_DATA_VERDICT);
  PutNumber(message, NFTA_VERDICT_CODE, static_cast<std::uint32_t>(code));
  message.PutText(NFTA_VERDICT_CHAIN, chain).End(verdict).End(data);
}

void PutExpression(NetlinkMessage& message, const char* name, const std::function<void()>& data) {
  const std::size_t element = message.Begin(NFTA_LIST_ELEM);
  message.PutText(NFTA_EXPR_NAME, name);
  const std::size_t begun = message.Begin(NFTA_EXPR_DATA);
  data();
  message.End(begun).End(element);
}

void LoadPayload(NetlinkMessage& message, unsigned base, std::uint32_t offset, std::uint32_t length,
                 std::uint32_t reg) {
  PutExpression(message, "payload", [&] {
    PutNumber(message, NFTA_PAYLOAD_DREG, reg);
    PutNumber(message, NFTA_PAYLOAD_BASE, base);
    PutNumber(message, NFTA_PAYLOAD_OFFSET, offset);
    PutNumber(message, NFTA_PAYLOAD_LEN, length);
  });
}

void LoadAddress(NetlinkMessage& message, Side side) {
  LoadPayload(message, NFT_PAYLOAD_NETWORK_HEADER, side == Side::kSource ? 12 : 16, 4,
              NFT_REG32_00);
}

// The port's place in the header of TCP and UDP holds a checksum in that of ICMP.
void RefuseIcmp(NetlinkMessage& message) {
  PutExpression(message, "meta", [&] {
    PutNumber(message, NFTA_META_DREG, NFT_REG32_00);
    PutNumber(message, NFTA_META_KEY, NFT_META_L4PROTO);
  });
  PutExpression(message, "cmp", [&] {
    PutNumber(message, NFTA_CMP_SREG, NFT_REG32_00);
    PutNumber(message, NFTA_CMP_OP, NFT_CMP_NEQ);
    PutKey(message, NFTA_CMP_DATA, static_cast<std::uint8_t>(IPPROTO_ICMP));
  });
}

void LoadFlow(NetlinkMessage& message, nft_ct_keys key, std::uint32_t reg, bool original) {
  PutExpression(message, "ct", [&] {
    PutNumber(message, NFTA_CT_DREG, reg);
    PutNumber(message, NFTA_CT_KEY, static_cast<std::uint32_t>(key));
    if (original) message.Put(NFTA_CT_DIRECTION, std::uint8_t{IP_CT_DIR_ORIGINAL});
  });
}

// The numbers are NF_CT_STATE_BIT of linux/netfilter/nf_conntrack_common.h, in the host's order.
void RequireState(NetlinkMessage& message, FlowState state) {
  const std::uint32_t bits = state == FlowState::kNew ? NF_CT_STATE_BIT(IP_CT_NEW)
                                                      : NF_CT_STATE_BIT(IP_CT_ESTABLISHED) |
                                                            NF_CT_STATE_BIT(IP_CT_RELATED);
  LoadFlow(message, NFT_CT_STATE, NFT_REG32_00, false);
  PutExpression(message, "bitwise", [&] {
    PutNumber(message, NFTA_BITWISE_SREG, NFT_REG32_00);
    PutNumber(message, NFTA_BITWISE_DREG, NFT_REG32_00);
    PutNumber(message, NFTA_BITWISE_LEN, sizeof(bits));
    PutKey(message, NFTA_BITWISE_MASK, bits);
    PutKey(message, NFTA_BITWISE_XOR, std::uint32_t{0});
  });
  PutExpression(message, "cmp", [&] {
    PutNumber(message, NFTA_CMP_SREG, NFT_REG32_00);
    PutNumber(message, NFTA_CMP_OP, NFT_CMP_NEQ);
    PutKey(message, NFTA_CMP_DATA, std::uint32_t{0});
  });
}

void LoadAddressAndPort(NetlinkMessage& message, Side side) {
  LoadAddress(message, side);
  LoadPayload(message, NFT_PAYLOAD_TRANSPORT_HEADER, side == Side::kSource ? 0 : 2, 2,
              NFT_REG32_01);
}

void Go(NetlinkMessage& message, int verdict, const std::string& target) {
  PutExpression(message, "immediate", [&] {
    PutNumber(message, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    PutVerdict(message, NFTA_IMMEDIATE_DATA, verdict, target);
  });
}

void LookUpAndGo(NetlinkMessage& message, const std::string& set, const std::string& target) {
  PutExpression(message, "lookup", [&] {
    message.PutText(NFTA_LOOKUP_SET, set);
    PutNumber(message, NFTA_LOOKUP_SREG, NFT_REG32_00);
  });
  Go(message, NFT_GOTO, target);
}

void PutElement(NetlinkMessage& message, const std::function<void()>& content) {
  const std::size_t element = message.Begin(NFTA_LIST_ELEM);
  content();
  message.End(element);
}

}  // namespace

NetlinkMessage& FilterBatch::Message(unsigned type, std::uint16_t flags) {
  NetlinkMessage& message =
      messages_.emplace_back(static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type), flags);
  return message.Append(nfgenmsg{.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0});
}

void FilterBatch::Named(unsigned type, std::uint16_t table_attribute, std::uint16_t name_attribute,
                        const std::string& name) {
  Message(type, type == NFT_MSG_NEWCHAIN ? NLM_F_CREATE : 0)
      .PutText(table_attribute, kTable)
      .PutText(name_attribute, name);
}

void FilterBatch::AddChain(const std::string& name) {
  Named(NFT_MSG_NEWCHAIN, NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME, name);
}
void FilterBatch::DeleteChain(const std::string& name) {
  Named(NFT_MSG_DELRULE, NFTA_RULE_TABLE, NFTA_RULE_CHAIN, name);
  Named(NFT_MSG_DELCHAIN, NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME, name);
}
void FilterBatch::DeleteSet(const std::string& name) {
  Named(NFT_MSG_DELSET, NFTA_SET_TABLE, NFTA_SET_NAME, name);
}
void FilterBatch::FlushSet(const std::string& name) {
  Named(NFT_MSG_DELSETELEM, NFTA_SET_ELEM_LIST_TABLE, NFTA_SET_ELEM_LIST_SET, name);
}

void FilterBatch::AddCounter(const std::string& name, std::uint64_t packets) {
  NetlinkMessage& message = Message(NFT_MSG_NEWOBJ, NLM_F_CREATE);
  message.PutText(NFTA_OBJ_TABLE, kTable).PutText(NFTA_OBJ_NAME, name);
  PutNumber(message, NFTA_OBJ_TYPE, NFT_OBJECT_COUNTER);
  const std::size_t data = message.Begin(NFTA_OBJ_DATA);
  message.Put(NFTA_COUNTER_BYTES, std::uint64_t{0}).Put(NFTA_COUNTER_PACKETS, htobe64(packets));
  message.End(data);
}

void FilterBatch::AddQuota(const std::string& name, std::uint64_t over_bytes) {
  NetlinkMessage& message = Message(NFT_MSG_NEWOBJ, NLM_F_CREATE);
  message.PutText(NFTA_OBJ_TABLE, kTable).PutText(NFTA_OBJ_NAME, name);
  PutNumber(message, NFTA_OBJ_TYPE, NFT_OBJECT_QUOTA);
  const std::size_t data = message.Begin(NFTA_OBJ_DATA);
  message.Put(NFTA_QUOTA_BYTES, htobe64(over_bytes));
  PutNumber(message, NFTA_QUOTA_FLAGS, NFT_QUOTA_F_INV);
  message.End(data);
}

void FilterBatch::DeleteObject(std::uint32_t kind, const std::string& name) {
  NetlinkMessage& message = Message(NFT_MSG_DELOBJ, 0);
  message.PutText(NFTA_OBJ_TABLE, kTable).PutText(NFTA_OBJ_NAME, name);
  PutNumber(message, NFTA_OBJ_TYPE, kind);
}
void FilterBatch::DeleteCounter(const std::string& name) { DeleteObject(NFT_OBJECT_COUNTER, name); }
void FilterBatch::DeleteQuota(const std::string& name) { DeleteObject(NFT_OBJECT_QUOTA, name); }

NetlinkMessage& FilterBatch::AddSet(const std::string& name, std::uint32_t flags,
                                    std::uint32_t type, std::uint32_t length) {
  NetlinkMessage& message = Message(NFT_MSG_NEWSET, NLM_F_CREATE);
  message.PutText(NFTA_SET_TABLE, kTable).PutText(NFTA_SET_NAME, name);
  PutNumber(message, NFTA_SET_FLAGS, flags);
  PutNumber(message, NFTA_SET_KEY_TYPE, type);
  PutNumber(message, NFTA_SET_KEY_LEN, length);
  PutNumber(message, NFTA_SET_ID, ++set_id_);
  return message;
}

void FilterBatch::AddAddressSet(const std::string& name) {
  AddSet(name, NFT_SET_INTERVAL, kAddressType, sizeof(std::uint32_t));
}

void FilterBatch::AddPortSet(const std::string& name) {
  NetlinkMessage& message = AddSet(name, NFT_SET_INTERVAL | NFT_SET_CONCAT,
                                   kAddressType << kTypeBits | kPortType, sizeof(PortKey));
  const std::size_t description = message.Begin(NFTA_SET_DESC);
  const std::size_t fields = message.Begin(NFTA_SET_DESC_CONCAT);
  for (const std::size_t length : {sizeof(PortKey::address), sizeof(PortKey::port)}) {
    PutElement(message,
               [&] { PutNumber(message, NFTA_SET_FIELD_LEN, static_cast<std::uint32_t>(length)); });
  }
  message.End(fields).End(description);
}

void FilterBatch::AddPinSet(const std::string& name, std::uint32_t size) {
  NetlinkMessage& message =
      AddSet(name, NFT_SET_TIMEOUT, kAddressType << kTypeBits | kPortType, sizeof(PortKey));
  const std::size_t description = message.Begin(NFTA_SET_DESC);
  PutNumber(message, NFTA_SET_DESC_SIZE, size);
  message.End(description);
}

void FilterBatch::AddRule(const std::string& chain,
                          const std::function<void(NetlinkMessage&)>& expressions) {
  NetlinkMessage& message = Message(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
  message.PutText(NFTA_RULE_TABLE, kTable).PutText(NFTA_RULE_CHAIN, chain);
  const std::size_t list = message.Begin(NFTA_RULE_EXPRESSIONS);
  expressions(message);
  message.End(list);
}

void FilterBatch::AddAddressRule(const std::string& chain, Side side, const std::string& set,
                                 const std::string& target) {
  AddRule(chain, [&](NetlinkMessage& message) {
    LoadAddress(message, side);
    LookUpAndGo(message, set, target);
  });
}

void FilterBatch::AddPortRule(const std::string& chain, Side side, const std::string& set,
                              const std::string& target) {
  AddRule(chain, [&](NetlinkMessage& message) {
    RefuseIcmp(message);
    LoadAddressAndPort(message, side);
    LookUpAndGo(message, set, target);
  });
}

void FilterBatch::AddPortRule(const std::string& chain, Side side, FlowState state,
                              const std::string& set, const std::string& target) {
  AddRule(chain, [&](NetlinkMessage& message) {
    RequireState(message, state);
    RefuseIcmp(message);
    LoadAddressAndPort(message, side);
    LookUpAndGo(message, set, target);
  });
}

void FilterBatch::AddOriginalRule(const std::string& chain, const std::string& set,
                                  const std::string& target) {
  AddRule(chain, [&](NetlinkMessage& message) {
    LoadFlow(message, NFT_CT_DST_IP, NFT_REG32_00, true);
    LoadFlow(message, NFT_CT_PROTO_DST, NFT_REG32_01, true);
    LookUpAndGo(message, set, target);
  });
}

void FilterBatch::AddJumpRule(const std::string& chain, const std::string& target) {
  AddRule(chain, [&](NetlinkMessage& message) { Go(message, NFT_JUMP, target); });
}

// Elements go in messages of some hundreds; `put` writes the one with this number.
void FilterBatch::AddElements(unsigned type, const std::string& set, std::size_t count,
                              const std::function<void(NetlinkMessage&, std::size_t)>& put) {
  for (std::size_t next = 0; next < count;) {
    NetlinkMessage& message = Message(type, type == NFT_MSG_NEWSETELEM ? NLM_F_CREATE : 0);
    message.PutText(NFTA_SET_ELEM_LIST_TABLE, kTable).PutText(NFTA_SET_ELEM_LIST_SET, set);
    const std::size_t list = message.Begin(NFTA_SET_ELEM_LIST_ELEMENTS);
    for (const std::size_t end = std::min(count, next + kElementsPerMessage); next < end; ++next) {
      put(message, next);
    }
    message.End(list);
  }
}

// A range is an element at its first address and one that ends it behind its last.
void FilterBatch::AddRanges(const std::string& set, const std::vector<Range>& ranges) {
  AddElements(NFT_MSG_NEWSETELEM, set, ranges.size(), [&](NetlinkMessage& message, std::size_t i) {
    PutElement(message, [&] { PutKey(message, NFTA_SET_ELEM_KEY, htonl(ranges[i].first)); });
    if (ranges[i].last == 0xffffffff) return;
    PutElement(message, [&] {
      PutKey(message, NFTA_SET_ELEM_KEY, htonl(ranges[i].last + 1));
      PutNumber(message, NFTA_SET_ELEM_FLAGS, NFT_SET_ELEM_INTERVAL_END);
    });
  });
}

void FilterBatch::AddRanges(const std::string& set, const std::vector<Range>& ranges,
                            std::uint16_t port) {
  AddElements(NFT_MSG_NEWSETELEM, set, ranges.size(), [&](NetlinkMessage& message, std::size_t i) {
    PutElement(message, [&] {
      PutKey(message, NFTA_SET_ELEM_KEY, KeyOf(ranges[i].first, port));
      PutKey(message, NFTA_SET_ELEM_KEY_END, KeyOf(ranges[i].last, port));
    });
  });
}

void FilterBatch::AddAddress(const std::string& set, std::uint32_t address) {
  AddElements(NFT_MSG_NEWSETELEM, set, 1, [&](NetlinkMessage& message, std::size_t) {
    PutElement(message, [&] { PutKey(message, NFTA_SET_ELEM_KEY, htonl(address)); });
  });
}

void FilterBatch::AddJump(const std::string& map, std::uint32_t address, const std::string& chain) {
  AddElements(NFT_MSG_NEWSETELEM, map, 1, [&](NetlinkMessage& message, std::size_t) {
    PutElement(message, [&] {
      PutKey(message, NFTA_SET_ELEM_KEY, htonl(address));
      PutVerdict(message, NFTA_SET_ELEM_DATA, NFT_JUMP, chain);
    });
  });
}

void FilterBatch::AddObject(const std::string& map, std::uint32_t address,
                            const std::string& object) {
  AddElements(NFT_MSG_NEWSETELEM, map, 1, [&](NetlinkMessage& message, std::size_t) {
    PutElement(message, [&] {
      PutKey(message, NFTA_SET_ELEM_KEY, htonl(address));
      message.PutText(NFTA_SET_ELEM_OBJREF, object);
    });
  });
}

void FilterBatch::DeleteAddress(const std::string& set_or_map, std::uint32_t address) {
  AddElements(NFT_MSG_DELSETELEM, set_or_map, 1, [&](NetlinkMessage& message, std::size_t) {
    PutElement(message, [&] { PutKey(message, NFTA_SET_ELEM_KEY, htonl(address)); });
  });
}

void FilterBatch::AddSource(const std::string& set, const std::string& link,
                            std::uint32_t address) {
  AddElements(NFT_MSG_NEWSETELEM, set, 1, [&](NetlinkMessage& message, std::size_t) {
    PutElement(message, [&] { PutKey(message, NFTA_SET_ELEM_KEY, KeyOf(link, address)); });
  });
}

void FilterBatch::DeleteSource(const std::string& set, const std::string& link,
                               std::uint32_t address) {
  AddElements(NFT_MSG_DELSETELEM, set, 1, [&](NetlinkMessage& message, std::size_t) {
    PutElement(message, [&] { PutKey(message, NFTA_SET_ELEM_KEY, KeyOf(link, address)); });
  });
}

void FilterBatch::AddPins(const std::string& set, std::span<const Pin> pins) {
  AddElements(NFT_MSG_NEWSETELEM, set, pins.size(), [&](NetlinkMessage& message, std::size_t i) {
    PutElement(message, [&] {
      PutKey(message, NFTA_SET_ELEM_KEY, KeyOf(pins[i].address, pins[i].port));
      message.Put(NFTA_SET_ELEM_TIMEOUT,
                  htobe64(static_cast<std::uint64_t>(pins[i].lifetime.count())));
    });
  });
}

void FilterBatch::DeletePins(const std::string& set, std::span<const Pin> pins) {
  AddElements(NFT_MSG_DELSETELEM, set, pins.size(), [&](NetlinkMessage& message, std::size_t i) {
    PutElement(message,
               [&] { PutKey(message, NFTA_SET_ELEM_KEY, KeyOf(pins[i].address, pins[i].port)); });
  });
}

void FilterBatch::PutPairs(unsigned type, const std::string& set, std::span<const Pair> pairs) {
  AddElements(type, set, pairs.size(), [&](NetlinkMessage& message, std::size_t i) {
    PutElement(message, [&] {
      PutKey(message, NFTA_SET_ELEM_KEY, PairKey{htonl(pairs[i].first), htonl(pairs[i].second)});
    });
  });
}

void FilterBatch::AddPairs(const std::string& set, std::span<const Pair> pairs) {
  PutPairs(NFT_MSG_NEWSETELEM, set, pairs);
}
void FilterBatch::DeletePairs(const std::string& set, std::span<const Pair> pairs) {
  PutPairs(NFT_MSG_DELSETELEM, set, pairs);
}

}  // namespace caisson::egress
