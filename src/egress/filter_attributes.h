// SPDX-License-Identifier: Apache-2.0
// Attributes of netlink messages of nf_tables, for the parts of FilterBatch alone.
#pragma once

#include <arpa/inet.h>
#include <linux/netfilter/nf_tables.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "os/netlink.h"

namespace caisson::egress {

// The key of a set over an address and a port, in the packets' order.
struct PortKey {
  std::uint32_t address;
  std::uint16_t port;
  std::uint16_t padding = 0;
};

inline void PutNumber(os::NetlinkMessage& message, std::uint16_t attribute, std::uint32_t number) {
  message.Put(attribute, htonl(number));
}

template <typename Key>
void PutKey(os::NetlinkMessage& message, std::uint16_t attribute, const Key& key) {
  const std::size_t data = message.Begin(attribute);
  message.Put(NFTA_DATA_VALUE, key).End(data);
}

inline void PutVerdict(os::NetlinkMessage& message, std::uint16_t attribute, int code,
                       const std::string& chain) {
  const std::size_t data = message.Begin(attribute);
  const std::size_t verdict = message.Begin(NFTA_DATA_VERDICT);
  PutNumber(message, NFTA_VERDICT_CODE, static_cast<std::uint32_t>(code));
  message.PutText(NFTA_VERDICT_CHAIN, chain).End(verdict).End(data);
}

inline void PutElement(os::NetlinkMessage& message, const std::function<void()>& content) {
  const std::size_t element = message.Begin(NFTA_LIST_ELEM);
  content();
  message.End(element);
}

}  // namespace caisson::egress
