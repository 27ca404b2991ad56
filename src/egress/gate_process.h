// SPDX-License-Identifier: Apache-2.0
// The helper's end of the gate: starts `caisson egress-gate` in the gateway's namespace behind the
// walls of src/jail, tells it the rules of machines, hands on what it says, and starts it anew when
// it ends. While it is away its sockets stay open here, so that guests wait for a moment and are
// not refused; open connections and what it had pinned are gone. Thread-safe.
//
// What the packet filter must do for it (docs/network.md):
//   machines with rules by name: UDP and TCP to any port 53 -> redirect to kGateNamesPort;
//     TCP to a pinned address at a checked port, unless a rule by address opens it as well
//     -> redirect to kGateProxyPort;
//   input: from m*, only what was redirected (ct status dnat) to these two ports;
//   output, all of which is the gate's: answers; UDP and TCP 53 to the resolvers; TCP to the
//     checked ports of addresses that are neither closed nor the host's; nothing else.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "egress/gate_protocol.h"
#include "egress/policy.h"

namespace caisson::egress {

inline constexpr std::uint16_t kGateNamesPort = 10053;
inline constexpr std::uint16_t kGateProxyPort = 10080;

// Called from a thread of the gate's own, one call at a time; may be called while SetMachine waits.
class GateEvents {
 public:
  virtual ~GateEvents() = default;
  // Those of its addresses that the packet filter has now: not those that may not be open, and
  // none when it cannot be.
  virtual std::vector<std::uint32_t> Pin(const GatePin& pin) = 0;
  virtual void Denied(const GateDenial& denial) = 0;
  virtual void Counted(const GateCounters& counters) = 0;
};

struct GateOptions {
  int namespace_fd = -1;  // of the gateway; used while the gate lives
  std::vector<GateConfigure::Server> resolvers;
  std::string executable = "/proc/self/exe";
  std::vector<std::string> arguments = {"caisson", "egress-gate"};
  // Of its cgroup: what its sockets hold when all are full (egress/gate/proxy.h: 128 connections of
  // 1 MiB, 1,920 of 256 KiB), 64 KiB of each that is looked at, and itself.
  std::uint64_t memory_bytes = 768u << 20;
  std::chrono::milliseconds patience = std::chrono::seconds(5);  // for its start, and each answer
  std::uint16_t names_port = kGateNamesPort;
  std::uint16_t proxy_port = kGateProxyPort;
};

class GateProcess {
 public:
  // Returns once it is sealed and serves. Fails with egress.gate_failed when it cannot be jailed
  // (`events` must outlive the object).
  static Result<std::unique_ptr<GateProcess>> Start(const GateOptions& options, GateEvents& events);
  virtual ~GateProcess() = default;  // ends it

  // Returns once the gate holds to `rules` and has dropped what they do not allow. Generations of
  // one machine must grow. Fails with egress.gate_failed when it does not say so in time: it is
  // then ended, so that nothing of the old rules lives on, and started anew with the new ones.
  virtual Result<void> SetMachine(std::uint32_t address, std::uint64_t generation,
                                  std::span<const NameRule> rules) = 0;
  virtual Result<void> Forget(std::uint32_t address) = 0;

  // Of the gate that runs now: how it is walled in, and which process it is (0: none at this
  // moment).
  virtual std::vector<GateWall> walls() const = 0;
  virtual int pid() const = 0;
};

}  // namespace caisson::egress
