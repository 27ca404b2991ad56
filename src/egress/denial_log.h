// SPDX-License-Identifier: Apache-2.0
// What was denied to machines, as their owners may read it: for each machine the latest denials and
// what was counted. In memory; a restart of the process loses it, but numbers go on rising.
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace caisson::egress {

inline constexpr std::size_t kMaxDenials = 256;  // kept of one machine

struct Denial {
  std::uint64_t number = 0;  // rises from one to the next; given by the log
  std::int64_t time = 0;     // milliseconds since 1970; given by the log
  // "packet": refused by the packet filter. Else what the gate refused, as GateDenialName says it.
  std::string kind;
  std::string protocol;     // "tcp", "udp", "icmp", or a number
  std::string address;      // where it went to; empty: nowhere
  std::uint16_t port = 0;   // 0: none
  std::string name;         // that was asked for or connected to, as far as it is known; ASCII
  std::string rule;         // that allows the name, where one does
  std::string why;          // for people
  std::uint64_t count = 1;  // how often it happened in a row
};

// What a rule by name has let through.
struct RuleUse {
  std::string rule;
  std::uint64_t answers = 0;      // to questions for names
  std::uint64_t connections = 0;  // by way of the gate
};

struct NetworkLog {
  std::vector<Denial> denials;  // oldest first
  std::uint64_t last = 0;       // ask for what comes after this number next time
  std::uint64_t lost = 0;       // denials since the machine's start that were not kept, or not told
  std::uint64_t refused_packets = 0;  // by the packet filter, told or not
  std::uint64_t refused_by_gate = 0;  // questions and connections
  std::vector<RuleUse> rules;         // each rule by name of the present policy, in their order
};

class DenialLog {
 public:
  DenialLog();

  // `suppressed`: how many more there were of which nothing is known.
  void Add(std::uint32_t machine, Denial denial, std::uint64_t suppressed = 0);
  void CountDenials(std::uint32_t machine, std::uint64_t count);
  void CountUse(std::uint32_t machine, const std::string& rule, std::uint64_t answers,
                std::uint64_t connections);
  // What came after `after`. Without refused_packets, and with every rule that was ever counted.
  NetworkLog Read(std::uint32_t machine, std::uint64_t after) const;
  void Forget(std::uint32_t machine);

 private:
  struct Entries {
    std::deque<Denial> denials;
    std::uint64_t lost = 0;
    std::uint64_t by_gate = 0;
    std::map<std::string, RuleUse> uses;
  };
  mutable std::mutex mutex_;
  std::uint64_t next_;
  std::map<std::uint32_t, Entries> machines_;
};

}  // namespace caisson::egress
