// SPDX-License-Identifier: Apache-2.0
// What the gate knows of each machine: its rules, the addresses that its names were pinned to, how
// much it may ask for, and what is to be told to the helper. The address that a packet comes from
// says which machine it is (the packet filter sees to that). Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "egress/gate/loop.h"
#include "egress/gate_protocol.h"
#include "egress/name_rules.h"

namespace caisson::egress::gate {

// A budget that fills up with time.
class Budget {
 public:
  Budget(double per_second, double most) : per_second_(per_second), most_(most), left_(most) {}
  bool Take(Clock::time_point now);

 private:
  double per_second_;
  double most_;
  double left_;
  Clock::time_point at_;  // of the last question; none yet
};

struct Pin {
  std::vector<std::uint32_t> addresses;  // to answer with
  Clock::time_point until;
  std::uint64_t generation = 0;
};

class Machine {
 public:
  static constexpr std::size_t kMaxNames = 1024;  // pinned at once
  static constexpr std::size_t kMaxKnown = 256;   // addresses of one
  // A connection that the packet filter let through at the last moment is still known.
  static constexpr std::chrono::seconds kGrace{5};

  explicit Machine(std::uint32_t its_address) : address(its_address) {}

  const std::uint32_t address;
  std::uint64_t generation = 0;
  NameRules rules;
  Budget questions{100, 200};

  // The rule that allows this name at all.
  const NameRule* FindRule(std::string_view name) const;
  // The pin to answer from: of the present rules, and not about to end.
  const Pin* FindAnswer(const std::string& name, Clock::time_point now) const;
  // Whether this name was pinned to this address, by whatever rules, and still is.
  bool IsPinned(const std::string& name, std::uint32_t to, Clock::time_point now) const;
  void Remember(const std::string& name, Pin pin, Clock::time_point now);
  // Other rules: pins of names that they do not allow are gone.
  void Replace(std::uint64_t new_generation, NameRules new_rules);

  void CountAnswer(const NameRule& rule) { ++Counted(rule).answers; }
  void CountConnection(const NameRule& rule) { ++Counted(rule).connections; }

 private:
  friend class Machines;
  GateCounters::Entry& Counted(const NameRule& rule);

  struct Known {
    std::uint32_t address = 0;
    Clock::time_point until;
  };
  struct Name {
    Pin pin;
    std::vector<Known> known;  // those of earlier answers too, which a guest may still use
  };
  std::map<std::string, Name> names_;
  std::map<std::uint16_t, GateCounters::Entry> counters_;
  std::uint32_t denials_ = 0;
  std::uint32_t suppressed_ = 0;
  Budget told_{20, 60};
};

class Machines {
 public:
  using Tell = std::function<void(const GateMessage&)>;
  static constexpr std::size_t kMax = 65536;

  explicit Machines(Tell tell) : tell_(std::move(tell)) {}

  Machine* Find(std::uint32_t address);
  // Made when it is not there.
  Machine& Get(std::uint32_t address);
  void Forget(std::uint32_t address) { machines_.erase(address); }
  std::size_t size() const { return machines_.size(); }

  struct Denial {
    GateDenialKind kind = GateDenialKind::kName;
    std::string_view name;
    std::uint32_t address = 0;
    std::uint16_t port = 0;
    const NameRule* rule = nullptr;
  };
  // Counts it, and tells it unless this machine has had too many of late or `may_tell` is false.
  void Deny(Machine& machine, const Denial& denial, Clock::time_point now, bool may_tell = true);
  // Tells the counters that have changed.
  void TellCounters();

 private:
  Tell tell_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Machine>> machines_;
};

// Cut and without bytes that are not printable, for the log.
std::string ShownName(std::string_view name);

}  // namespace caisson::egress::gate
