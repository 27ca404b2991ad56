// SPDX-License-Identifier: Apache-2.0
// What the names of one machine's rules have resolved to: which addresses are open at which ports,
// until when, and by which names. No input or output and no clock: the packet filter holds what is
// said here. Not thread-safe.
//
// A pinned port is open to new connections as long as the answer lives (5 s to 5 min). It is held
// for a day: connections that are open go on meanwhile, though the name may resolve to something
// else by then. When the rules change, whatever no name opens any more is neither.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "egress/name_rules.h"

namespace caisson::egress {

inline constexpr std::chrono::seconds kLeastPinned{5};
inline constexpr std::chrono::seconds kMostPinned{300};
inline constexpr std::chrono::hours kHeld{24};
// Of one machine, addresses times ports. Beyond, what was resolved longest ago goes.
inline constexpr std::size_t kMaxPinnedPorts = 8192;
// Of one answer.
inline constexpr std::size_t kMaxPinnedAddresses = 64;

struct PinnedPort {
  std::uint32_t address = 0;
  std::uint16_t port = 0;
  bool checked = false;               // by the proxy, for the name; else open directly
  std::chrono::milliseconds open{0};  // for new connections from now on; 0: no more
  std::chrono::milliseconds held{0};  // for those that are open
  bool operator==(const PinnedPort&) const = default;
};

class Pins {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Pins(NameRules rules) : rules_(std::move(rules)) {}

  const NameRules& rules() const { return rules_; }

  struct Change {
    std::vector<PinnedPort> pinned;
    std::vector<PinnedPort> dropped;  // to make room
  };
  // `name` resolves to `addresses` for `ttl`, which is brought into its limits. Fails with
  // egress.pin_refused: no rule allows the name, an address is in a closed range (all of the answer
  // is refused then), or there are too many at once. Nothing is changed then.
  Result<Change> Add(const std::string& name, std::span<const std::uint32_t> addresses,
                     std::chrono::seconds ttl, Time now);

  // Drops what these do not open. All that remains has to be told to the packet filter anew.
  void Replace(NameRules rules, Time now);
  std::vector<PinnedPort> Standing(Time now) const;

 private:
  struct Pin {
    Time open_until;
    Time held_until;
  };
  struct Address {
    std::map<std::string, Pin> names;
    Time last;              // when it was resolved
    std::size_t count = 0;  // of its ports
  };
  std::vector<PinnedPort> PortsOf(std::uint32_t number, const Address& address, Time now) const;
  void Forget(Time now);
  void MakeRoom(Time now, Change& change);

  NameRules rules_;
  std::map<std::uint32_t, Address> addresses_;
  std::size_t total_ = 0;  // ports of all
};

}  // namespace caisson::egress
