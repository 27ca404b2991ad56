// SPDX-License-Identifier: Apache-2.0
// What of a transaction adds and deletes elements of sets and maps.
#include <arpa/inet.h>
#include <endian.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "egress/filter_attributes.h"
#include "egress/filter_batch.h"
#include "egress/ruleset.h"

namespace caisson::egress {

using os::NetlinkMessage;

namespace {

// An attribute holds 64 KiB, and an element of a range less than 128 bytes.
constexpr std::size_t kElementsPerMessage = 400;

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

}  // namespace

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
