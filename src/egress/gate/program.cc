// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/program.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/sanitizer.h"
#include "egress/gate/gate.h"
#include "egress/gate/limits.h"
#include "egress/gate/syscalls.h"
#include "egress/gate_channel.h"
#include "jail/seal.h"
#include "jail/spawn.h"

namespace caisson::egress::gate {
namespace {

constexpr int kBadCommand = 2;
constexpr int kNotReady = 3;
constexpr int kFailed = 4;
constexpr std::uint64_t kMaxDescriptors = 16384;
// Sanitizers reserve more than there is.
constexpr std::uint64_t kMaxData = kAddressSanitizer || kThreadSanitizer ? 0 : 512u << 20;

void AddWalls(const std::vector<jail::WallReport>& reports, GateReady& ready) {
  for (const jail::WallReport& report : reports) {
    ready.walls.push_back({report.name, report.stands, report.reason});
  }
}

struct Sealed {
  Loop loop;
  GateReady ready;
};

Result<Sealed> SealThis(const jail::SealTicket& ticket) {
  GateReady ready;
  CAISSON_ASSIGN(const auto hardened, jail::Harden(ticket));
  AddWalls(hardened, ready);
  CAISSON_ASSIGN(Loop loop, Loop::Make());
  CAISSON_ASSIGN(const auto sealed,
                 jail::Seal(ticket, {.syscalls = GateSyscalls(),
                                     .max_threads = 1,
                                     .max_open_files = kMaxDescriptors,
                                     .max_data_bytes = kMaxData,
                                     .connect_ports = {53, kHttpPort, kHttpsPort}}));
  AddWalls(sealed, ready);
  return Sealed{std::move(loop), std::move(ready)};
}

void SayWhy(const Status& status) {
  GateChannel channel{os::UniqueFd(jail::kChannelFd)};
  channel.Queue(GateFailed{status.message});
  (void)channel.Send();
}

Limits LimitsOfThis() {
  const ProxyOptions proxy;
  const ResolverOptions names;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);  // the seal sets the soft one to the hard one
  return LimitsFor(std::min<std::size_t>(limit.rlim_max, kMaxDescriptors),
                   {.flows = proxy.max_flows,
                    .flows_of_machine = proxy.max_flows_of_machine,
                    .lookups = names.max_lookups,
                    .name_streams = names.max_connections});
}

}  // namespace

int GateMain(std::string_view text) {
  const auto ticket = jail::SealTicket::FromText(text);
  if (!ticket) {
    std::fprintf(stderr, "caisson: %s\n", ticket.error().message.c_str());
    return kBadCommand;
  }
  std::signal(SIGPIPE, SIG_IGN);
  const Limits limits = LimitsOfThis();
  auto sealed = SealThis(*ticket);
  if (!sealed) {
    SayWhy(sealed.error());
    return kNotReady;
  }
  ProxyOptions proxy;
  proxy.max_flows = limits.flows;
  proxy.max_flows_of_machine = limits.flows_of_machine;
  Gate gate(std::move(sealed->loop), os::UniqueFd(jail::kChannelFd), std::move(proxy),
            {.max_lookups = limits.lookups, .max_connections = limits.name_streams});
  const auto end = gate.Run(sealed->ready);
  // Not destroyed: a sealed process ends, it does not tidy up.
  ::_exit(end ? 0 : kFailed);
}

}  // namespace caisson::egress::gate
