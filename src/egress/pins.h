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
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "egress/name_rules.h"

namespace caisson::egress {

inline constexpr std::chrono::seconds kLeastPinned{5};
inline constexpr std::chrono::seconds kMostPinned{300};
inline constexpr std::chrono::hours kHeld{24};
// Of one machine, addresses times ports. Beyond, what was resolved longest ago goes.
inline constexpr std::size_t kMaxPinnedPorts = 8192;
// Of one answer: addresses, and addresses times ports.
inline constexpr std::size_t kMaxPinnedAddresses = 64;
inline constexpr std::size_t kMaxPortsOfAnswer = 512;
// Of one machine, as the gate. A guest can make up names without end below a wildcard. Beyond, the
// name whose answer ends first goes.
inline constexpr std::size_t kMaxPinnedNames = 1024;
// Of one machine, names times their addresses.
inline constexpr std::size_t kMaxPinnedPairs = 8192;

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
    std::vector<PinnedPort> pinned;   // those of the name
    std::vector<PinnedPort> dropped;  // to make room
  };
  // `name` resolves to `addresses` for `ttl`, which is brought into its limits. Fails with
  // egress.pin_refused: no rule allows the name, an address is in a closed range (all of the answer
  // is refused then), or there are too many at once. Nothing is changed then.
  Result<Change> Add(const std::string& name, std::span<const std::uint32_t> addresses,
                     std::chrono::seconds ttl, Time now);

  // For a change that was not enforced: what the name had is gone, and what was dropped stays so.
  // All that remains has to be told to the packet filter anew.
  void Withdraw(const std::string& name, Time now);

  // Drops what these do not open. All that remains has to be told to the packet filter anew.
  void Replace(NameRules rules, Time now);
  std::vector<PinnedPort> Standing(Time now) const;
  std::size_t names() const { return names_.size(); }

 private:
  struct Pin {
    Time open_until;
    Time held_until;
  };
  using PortKey = std::pair<std::uint16_t, bool>;  // and whether it is checked
  struct Port {
    Pin pin;                // the longest of its names
    std::size_t names = 0;  // that open it
  };
  struct Address {
    std::map<std::string, Pin> names;
    std::map<PortKey, Port> ports;
    Time last;  // when it was resolved
  };
  struct Name {
    std::vector<PortKey> ports;  // that the rules open for it
    std::set<std::uint32_t> addresses;
    Time open_until;
  };
  static void Extend(Pin& pin, const Pin& by);
  static PinnedPort Shown(std::uint32_t number, const PortKey& key, const Pin& pin, Time now);
  std::vector<PortKey> PortsOf(const std::string& name) const;
  Result<void> CheckRoom(const std::string& name, std::span<const std::uint32_t> addresses,
                         const std::vector<PortKey>& ports) const;
  void Put(const std::string& name, std::uint32_t number, const Pin& pin, Time last);
  // What no other name opens is added to `dropped`.
  void Take(const std::string& name, std::uint32_t number, Time now,
            std::vector<PinnedPort>& dropped);
  void TakeName(const std::string& name, Time now, std::vector<PinnedPort>& dropped);
  void TakeAddress(std::uint32_t number, Time now, std::vector<PinnedPort>& dropped);
  void MakeRoom(const std::string& kept, std::span<const std::uint32_t> addresses, Time now,
                std::vector<PinnedPort>& dropped);

  NameRules rules_;
  std::map<std::uint32_t, Address> addresses_;
  std::map<std::string, Name> names_;
  std::set<std::pair<Time, std::uint32_t>> by_age_;  // all addresses, by when they were resolved
  std::size_t total_ = 0;                            // ports of all addresses
  std::size_t pairs_ = 0;                            // names of all addresses
};

}  // namespace caisson::egress
