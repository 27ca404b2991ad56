// SPDX-License-Identifier: Apache-2.0
// Networks of machines: one network namespace each, linked to a gateway, a namespace of ours that
// filters and translates and has one link to the host. Needs root. A machine's network is known by
// its index alone, which its owner keeps: everything else follows from it or stands in the kernel,
// so that a network outlives this process and is adopted by the next one.
//
//   machine (eth0) ── m7 gateway up ── caisson0 host ── the world
//
// Questions for names and connections that are checked for one go to the gate, a process of its own
// (egress/gate_process.h). What it resolves is opened by the gateway alone, after its own check.
//
// Whatever fails, nothing opens: a machine whose rules are not there reaches nothing, one of which
// we do not know is cut off, and without the gate no name is open. Thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "egress/crowding.h"
#include "egress/denial_log.h"
#include "egress/gate_process.h"
#include "egress/links.h"
#include "egress/machine_rules.h"
#include "egress/packet_filter.h"
#include "egress/pins.h"
#include "egress/policy.h"
#include "egress/refused_packets.h"
#include "egress/ruleset.h"
#include "egress/shared_networks.h"
#include "os/fd.h"

namespace caisson::egress {

struct GatewayOptions {
  std::string directory;    // keeps namespaces by bind mounts: "/run/caisson/network"
  std::string nft = "nft";  // a path, or a name in PATH
  std::chrono::milliseconds patience = std::chrono::seconds(10);  // of nft, and of the lock
  std::string uplink = "caisson0";  // the host's end of its one link, at most 15 characters
  Range pool =
      NetworkOf(0x0ae70000, 16);  // 10.231.0.0/16: must lie in closed ranges, seen by machines only
  Range transit =
      NetworkOf(0xa9fef3fc, 30);  // 169.254.243.252/30: between the host and the gateway
  // How full the host's table of tracked connections is.
  std::function<std::optional<TrackedConnections>()> tracked = ReadTracked;
  // Where questions for names go, at most three; empty: as the host does (HostResolvers).
  std::optional<std::vector<std::uint32_t>> resolvers;
  // Starts what enforces rules by name (GateProcess::Start, with what else it is told). The options
  // that it gets name the gateway's namespace and the resolvers. Empty: no name is open.
  std::function<Result<std::unique_ptr<GateProcess>>(const GateOptions&, GateEvents&)> start_gate;
};

// The IPv4 name servers of this host that are not on its loopback: of `paths` the first file that
// has any, at most three. None: machines resolve nothing.
std::vector<std::uint32_t> HostResolvers(const std::vector<std::string>& paths = {
                                             "/etc/resolv.conf", "/run/systemd/resolve/resolv.conf",
                                             "/run/NetworkManager/no-stub-resolv.conf"});

struct Network {
  std::uint32_t index = 0;     // what the owner must keep
  std::string address;         // of the machine, "10.231.0.7": unique on this host
  std::string namespace_path;  // for setns(2), as long as the network is there
};

// One whose machine is a virtual one: not a namespace but a descriptor for its monitor. The machine
// must set up its own end so; no question is asked on the wire.
struct TapNetwork {
  Network network;
  os::UniqueFd tap;
  std::string mac;
  std::string gateway;
  std::string gateway_mac;
};

inline constexpr const char* kNamedTap = "tap0";

struct Traffic {
  std::uint64_t sent_bytes =
      0;  // that went out, by the machine's own packets; refused ones do not count
  std::uint64_t received_bytes = 0;  // that came in
};

class Gateway {
 public:
  // Makes the gateway, or adopts the one that `directory` keeps. What a machine has open goes on,
  // unless our rules are of another version or for other resolvers: then every machine is closed
  // until it is adopted. Fails with egress.unavailable, egress.filter_failed.
  static Result<std::unique_ptr<Gateway>> Open(const GatewayOptions& options);

  // Looks after the host, which others change, too: makes our rules there anew when they are gone,
  // closes addresses that it has got meanwhile, and leaves each machine few new connections while
  // the host can hardly track more. To be called every few seconds; costs little
  // when nothing has changed. Until it has mended them, machines may reach new addresses of the
  // host, and nothing else, by rules that are gone.
  Result<void> Refresh();

  // A new network with nothing but what `policy` opens. To prepare one for later: Policy::DenyAll.
  // Fails with egress.exhausted, egress.filter_*, os.syscall; nothing is left then.
  Result<Network> Make(const Policy& policy);
  // Likewise.
  Result<TapNetwork> MakeTap(const Policy& policy);
  // Likewise, for a monitor that opens its tap by name (kNamedTap, in the network's namespace) as
  // the user `owner`, who needs no rights over any network for it. `tap` is invalid.
  Result<TapNetwork> MakeNamedTap(const Policy& policy, uid_t owner);
  // What a machine sends is lost until the kernel has seen that its tap was opened: makes it see.
  Result<void> AwaitNamedTap(std::uint32_t index);
  // The network that is there already, with these rules. Fails with egress.no_network, and as
  // Apply.
  Result<Network> Adopt(std::uint32_t index, const Policy& policy,
                        std::uint64_t cap_bytes = kNoCap);

  // Replaces the rules in one step, for what is open already, too: no packet passes by the old ones
  // afterwards. `cap_bytes` of sent bytes from its making on: what is beyond is refused. Fails with
  // egress.filter_failed (the old rules stand), with egress.filter_unknown (its link is down, the
  // next Apply that succeeds sets it up again), with egress.no_network.
  Result<void> Apply(std::uint32_t index, const Policy& policy, std::uint64_t cap_bytes = kNoCap);

  // Whether rules by name are enforced; else they open nothing. Why not, if a gate was wanted.
  bool enforces_names() const { return gate_ != nullptr; }
  const std::optional<Status>& gate_failure() const { return gate_failure_; }

  // The networks that it shares with other machines, by ids that the owner chooses
  // (IsSharedNetworkId): machines that have one in common reach each other by TCP, UDP and ping,
  // whatever their policies say. In one step, also for what is open already. After a restart each
  // machine has to be told of again. Fails with egress.bad_network, egress.no_network, and as
  // Apply.
  Result<void> Share(std::uint32_t index, const std::set<std::string>& networks);

  // What was denied to it, after the denial of this number (0: all that is kept).
  Result<NetworkLog> ReadLog(std::uint32_t index, std::uint64_t after);

  // Takes everything away. Idempotent; an index of nothing is fine.
  Result<void> Remove(std::uint32_t index);
  // Counted from the making on; from 0 again when the rules had to be made anew (see Open).
  Result<Traffic> ReadTraffic(std::uint32_t index);
  // The indexes of all networks of which anything is there, for adoption and removal.
  Result<std::vector<std::uint32_t>> List();

  // What belongs into a machine's resolv.conf; nothing answers there unless public addresses are
  // open. May be empty.
  std::vector<std::string> name_servers() const;

  // Removes all networks and the gateway itself.
  Result<void> Dismantle();

  ~Gateway();

 private:
  // What is known of a machine's rules.
  struct Member {
    std::optional<Policy> policy;  // that holds
    std::optional<Pins> pins;      // while it opens names
    std::uint64_t generation = 0;  // of its rules by name, as the gate knows them
    bool has_names = false;        // NamesMark is in the filter
  };
  class Events;

  explicit Gateway(GatewayOptions options);

  std::string PathOf(std::uint32_t index) const;
  std::string GatewayPath() const { return options_.directory + "/gateway"; }
  std::uint32_t AddressOf(std::uint32_t index) const { return options_.pool.first + index; }
  std::uint32_t inside() const { return options_.pool.first + 1; }  // the gateway, seen by machines

  Result<void> Start();
  Result<void> OpenNamespace();
  Result<void> LinkToHost();
  Result<void> RunNft(const std::string& file, const std::string& text);
  Result<void> LoadHostRules();
  Result<void> CloseHostAddresses();
  Result<void> WatchCrowd();
  Result<void> LoadGatewayRules();
  Result<std::uint32_t> TakeIndex();
  Result<void> Connect(std::uint32_t index);
  Result<os::UniqueFd> ConnectTap(std::uint32_t index);
  Result<void> ConnectNamedTap(std::uint32_t index, uid_t owner);
  TapNetwork TapOf(std::uint32_t index, os::UniqueFd tap) const;
  Result<void> SetUpEnd(std::uint32_t index);
  enum class Rules : std::uint8_t { kNew, kReplaced };
  Result<void> ApplyAndTell(MachineRules rules, Rules which);
  Result<void> ApplyLocked(const MachineRules& rules, Rules which);
  Result<Member> Recall(const MachineRules& rules, Rules which);
  Result<void> StartGate();
  void WatchGate(const std::stop_token& stop);
  void TellGate(std::uint32_t index);
  void TellGateLocked(std::uint32_t index);
  std::vector<std::uint32_t> Pin(const GatePin& pin);
  void NoteDenial(const GateDenial& denial);
  void NoteDenialLocked(const GateDenial& denial);
  void NoteUse(const GateCounters& counters);
  Result<void> ShareLocked(std::uint32_t index, const std::set<std::string>& networks);
  Result<void> KnowShared();
  void NoteRefusals(const std::stop_token& stop);
  void NoteRefusal(const RefusedPacket& packet);
  bool IsOfHost(std::uint32_t address) const;
  // The machine of an address of the pool, if its rules are known.
  Member* MemberOf(std::uint32_t address);
  Result<void> CloseLocked(std::uint32_t index);
  Result<std::vector<std::uint32_t>> ListLocked();

  GatewayOptions options_;
  std::vector<Resolver> resolvers_;
  std::mutex remover_mutex_;
  std::optional<Links> remover_;
  std::mutex mutex_;   // all below
  os::UniqueFd lock_;  // one process at a time
  os::UniqueFd namespace_;
  std::optional<Links> host_links_;
  std::optional<Links> links_;  // in the gateway
  std::optional<PacketFilter> filter_;
  std::optional<PacketFilter> host_filter_;  // only looked at: others change it, too
  std::vector<std::uint32_t> host_addresses_;
  std::optional<bool> is_crowded_;  // as the filter has it
  std::set<std::uint32_t> used_;
  std::set<std::uint32_t> cut_;  // whose link was set down
  std::uint32_t last_ = 0;
  std::map<std::uint32_t, Member> members_;
  SharedNetworks shared_;
  std::uint64_t generation_ = 0;

  DenialLog log_;
  std::optional<RefusedPackets> refused_;  // of the listener
  std::unique_ptr<Events> events_;
  std::optional<Status> gate_failure_;
  std::mutex gate_mutex_;  // held while the gate is told of rules; before mutex_
  std::map<std::uint32_t, std::uint64_t> told_;  // generations that the gate knows; by gate_mutex_
  // These end first: their threads use all above.
  std::unique_ptr<GateProcess> gate_;
  std::jthread listener_;
  std::jthread watcher_;
};

}  // namespace caisson::egress
