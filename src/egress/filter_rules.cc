// SPDX-License-Identifier: Apache-2.0
// What of a transaction adds rules: their expressions, as the kernel's virtual machine takes them.
#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>

#include "egress/filter_attributes.h"
#include "egress/filter_batch.h"
#include "egress/ruleset.h"

namespace caisson::egress {

using os::NetlinkMessage;

namespace {

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

}  // namespace

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

}  // namespace caisson::egress
