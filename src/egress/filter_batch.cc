// SPDX-License-Identifier: Apache-2.0
#include "egress/filter_batch.h"

#include <arpa/inet.h>
#include <endian.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <cstddef>

#include "egress/filter_attributes.h"
#include "egress/ruleset.h"

namespace caisson::egress {

using os::NetlinkMessage;

namespace {

// What nft(8) shows keys as; the kernel does not care.
constexpr std::uint32_t kAddressType = 7;
constexpr std::uint32_t kPortType = 13;
constexpr std::uint32_t kTypeBits = 6;

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

}  // namespace caisson::egress
