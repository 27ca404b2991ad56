// SPDX-License-Identifier: Apache-2.0
// Takes the connections of machines that were redirected here: reads the name that the guest says
// (SNI of TLS, Host of each HTTP request), and goes on to where the guest wanted to go only when
// the machine's rules allow that name at this port *and* this very address was pinned for it.
// Everything else is reset at once. Machines share one table of connections: when it is full, a new
// one takes the place of one of the machine that has most. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "egress/gate/flow.h"
#include "egress/gate/loop.h"
#include "egress/gate/machines.h"
#include "egress/gate/places.h"
#include "os/fd.h"

namespace caisson::egress::gate {

struct Endpoint {
  std::uint32_t address = 0;
  std::uint16_t port = 0;
  bool operator==(const Endpoint&) const = default;
};

// Where a redirected connection was to go, as the kernel remembers it (SO_ORIGINAL_DST).
std::optional<Endpoint> OriginalDestination(int fd);

struct ProxyOptions {
  std::size_t max_flows = 2048;
  std::size_t max_flows_of_machine = 512;
  // With wide buffers; the others have narrow ones, so that the memory of all is bounded.
  std::size_t max_wide = 128;
  std::size_t max_wide_of_machine = 16;
  std::chrono::milliseconds patience_for_name{10'000};    // from its start
  std::chrono::milliseconds patience_for_answer{10'000};  // of the destination
  // For a connection on which nothing moves, and for one of which a side has ended.
  std::chrono::milliseconds patience_idle{600'000};
  std::chrono::milliseconds patience_half_closed{60'000};
  // Tests, which have no packet filter, put theirs here.
  std::function<std::optional<Endpoint>(int fd)> destination = OriginalDestination;
  std::function<Endpoint(const Endpoint&)> dialled = [](const Endpoint& to) { return to; };
};

class Proxy {
 public:
  // What the kernel keeps for each way of a socket, which it doubles for its own needs, and what of
  // that waits to be sent to a guest, who may not read.
  static constexpr int kWideBytes = 128 << 10;
  static constexpr int kNarrowBytes = 32 << 10;
  static constexpr int kMostUnsent = 64 << 10;
  // How long one connection goes on before others have their turn.
  static constexpr std::chrono::milliseconds kSlice{1};
  static constexpr int kRequestsAtOnce = 64;

  Proxy(Loop& loop, Machines& machines, ProxyOptions options)
      : loop_(loop), machines_(machines), options_(std::move(options)) {}
  ~Proxy();

  // Bound, non-blocking, listening.
  Result<void> Serve(os::UniqueFd listener);

  // Resets what the machine's present rules do not allow.
  void Recheck(Machine& machine);
  // Resets all of a machine.
  void DropFlows(std::uint32_t machine);
  std::size_t flows() const { return flows_.size(); }

 private:
  struct Flow;
  using FlowPointer = std::shared_ptr<Flow>;

  void Accept();
  void Begin(os::UniqueFd guest, std::uint32_t address);
  bool FindPlace(const Machine& machine);
  void Ready(const FlowPointer& flow, bool of_guest, std::uint32_t events);
  void ReadName(const FlowPointer& flow);
  void Dial(const FlowPointer& flow);
  void Dialled(const FlowPointer& flow);
  void Continue(const FlowPointer& flow, bool guest_ready, bool world_ready, bool failed);
  void EndWhenIdle(const FlowPointer& flow);
  Relay::Looks LooksOf(Flow& flow);
  Relay::Verdict Inspect(Flow& flow, std::string_view bytes);
  Relay::Verdict InspectHello(Flow& flow, std::string_view bytes);
  // Whether the flow may go to `name`; records why not.
  bool Admit(Flow& flow, const std::string& name);
  void Deny(const Flow& flow, GateDenialKind kind, std::string_view name,
            const NameRule* rule = nullptr);
  void Refuse(const FlowPointer& flow, GateDenialKind kind, std::string_view name);
  void End(const FlowPointer& flow, bool reset);

  Loop& loop_;
  Machines& machines_;
  const ProxyOptions options_;
  Pipes pipes_;
  os::UniqueFd listener_;
  Places<FlowPointer> flows_;
  std::size_t wide_ = 0;
};

}  // namespace caisson::egress::gate
