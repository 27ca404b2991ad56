// SPDX-License-Identifier: Apache-2.0
// The rules of one machine, as they are added to the gateway's filter, changed and taken away by
// netlink. Names that end in a number belong to the machine with that index. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "egress/filter_batch.h"
#include "egress/pins.h"
#include "egress/policy.h"

namespace caisson::egress {

inline constexpr std::uint64_t kNoCap = std::uint64_t{1} << 62;

std::string SentCounter(std::uint32_t index);      // "sent7"
std::string ReceivedCounter(std::uint32_t index);  // "received7"
std::string RefusedCounter(std::uint32_t index);   // "refused7": packets that it sent in vain
// There when a machine has, or once had, rules by name; its packets are the Fingerprint of them.
std::string NamesMark(std::uint32_t index);
std::uint64_t Fingerprint(const Policy& policy);

struct MachineRules {
  std::uint32_t index = 0;
  std::uint32_t address = 0;
  const Policy& policy;
  std::uint64_t cap_bytes = kNoCap;    // of what it sends; beyond, nothing goes out
  std::span<const PinnedPort> pinned;  // what names have resolved to
  bool has_names = false;              // NamesMark is there
};
// Makes all that belongs to a machine.
FilterBatch MachineBatch(const MachineRules& rules);
// Replaces the policy of a machine that is there.
FilterBatch PolicyBatch(const MachineRules& rules);
// The same, but what is pinned stays as it is: for a policy with the same Fingerprint.
FilterBatch SamePolicyBatch(const MachineRules& rules);
// Of a machine that has a policy with rules by name.
FilterBatch PinBatch(std::uint32_t index, std::span<const PinnedPort> pinned,
                     std::span<const PinnedPort> dropped);
// The same, after a PinBatch that failed: nothing else is pinned then.
FilterBatch RepinBatch(std::uint32_t index, std::span<const PinnedPort> standing);
// Takes away all of a machine that is there.
FilterBatch RemovalBatch(std::uint32_t index, std::uint32_t address, bool has_names);

}  // namespace caisson::egress
