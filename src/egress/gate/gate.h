// SPDX-License-Identifier: Apache-2.0
// The gate put together: the channel to the helper, the machines, the resolver, the proxy, one
// thread. Knows nothing of how it was started or walled in. Ends when the helper does.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "egress/gate/loop.h"
#include "egress/gate/machines.h"
#include "egress/gate/proxy.h"
#include "egress/gate/resolver.h"
#include "egress/gate/upstream.h"
#include "egress/gate_channel.h"

namespace caisson::egress::gate {

class Gate {
 public:
  // How long a guest waits for the packet filter.
  static constexpr std::chrono::milliseconds kPatienceForPin{1500};
  static constexpr std::size_t kMaxUntold = 1u
                                            << 20;  // bytes of denials that the helper has not read

  Gate(Loop loop, os::UniqueFd channel, ProxyOptions options, ResolverOptions names = {});
  ~Gate();

  // Says that it is ready, then serves until the helper closes the channel. Fails with os.syscall
  // and egress.gate_failed.
  Result<void> Run(const GateReady& ready);

 private:
  void Channel();
  Result<void> Take(GateMessage message);
  Result<void> Configure(const GateConfigure& wish);
  void SetMachine(const GateMachine& wish);
  void Forget(const GateForget& wish);
  void Pinned(std::uint64_t id, Resolver::Opened opened);
  void RequestPin(Machine& machine, const std::string& name, std::uint32_t seconds,
                  const std::vector<std::uint32_t>& addresses, Resolver::Pinned pinned);
  void Tell(const GateMessage& message);
  void Send();
  void CountOften();
  void End(Status status);

  struct Waiting {
    Resolver::Pinned pinned;
    Loop::TimerId timer;
  };
  Loop loop_;
  GateChannel channel_;
  Machines machines_;
  Result<void> end_;
  std::unordered_map<std::uint64_t, Waiting> waiting_;
  std::uint64_t last_pin_ = 0;
  ProxyOptions options_;
  ResolverOptions names_;
  std::unique_ptr<Upstream> upstream_;
  std::unique_ptr<Resolver> resolver_;
  std::unique_ptr<Proxy> proxy_;
};

}  // namespace caisson::egress::gate
