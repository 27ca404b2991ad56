// SPDX-License-Identifier: Apache-2.0
// What makes machines: small computers with processes, files and perhaps a network. A Driver does
// what needs the host; commands, files and tunnels go through the machine's own agent (src/agent),
// over connections that Connect hands out, for every driver alike.
//
// A machine outlives the program that made it: List of a new Driver over the same state finds it.
// All calls block, may come from any thread, and are done one after the other per machine. What a
// driver does not declare in its Capabilities fails with machine.unsupported, before anything
// happens. A call that fails has changed nothing, unless it says otherwise.
//
// Every call can fail with machine.unavailable (the helper or the host cannot do it now), and every
// call that names a machine with machine.unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "egress/denial_log.h"
#include "egress/policy.h"
#include "os/fd.h"

namespace caisson::machine {

// How a paused machine is kept.
enum class Level : std::uint8_t {
  kNone,
  kMemory,  // its processes stand still in the host's memory; a reboot of the host ends them
  kDisk,    // it takes no memory of the host and survives a reboot; kMemory can be had, too
};
// What of a machine a snapshot or a fork holds.
enum class Extent : std::uint8_t {
  kNone,
  kFilesystem,  // its disk; processes start anew
  kFull,        // its memory and processes as well
};

struct Capabilities {
  std::string driver;     // "jail"
  std::string isolation;  // in a few words, for people
  // What stands between a machine and the host: "namespaces", "container", "user-space-kernel" or
  // "hardware-virtualized".
  std::string isolation_class;
  // A processor that software imitates: the same walls as a virtual machine's, but slow.
  bool emulated = false;
  Level pause = Level::kNone;
  // Whether processes go on after a pause to disk; else only the files are kept.
  bool disk_pause_keeps_processes = false;
  Extent snapshot = Extent::kNone;
  Extent fork = Extent::kNone;
  bool resize_disk = false;
  bool network = false;          // policies that open something are enforced
  bool host_name_rules = false;  // so are rules that name hosts
  bool shared_networks = false;  // machines can be in networks together
  bool operator==(const Capabilities&) const = default;
};

inline constexpr std::size_t kMaxIdLength = 40;
inline constexpr std::size_t kMaxHostNameLength = 63;
inline constexpr std::uint64_t kMinMemoryBytes = 32ull << 20;
inline constexpr std::uint64_t kMinDiskBytes = 64ull << 20;
inline constexpr std::uint64_t kMaxDiskBytes = 16ull << 40;
inline constexpr std::uint64_t kMinPids = 8;

// How many bytes a machine may send in its life, as Stats::network_sent_bytes counts them: what is
// beyond is refused, packet by packet. None: as many as it likes.
using SentCap = std::optional<std::uint64_t>;

struct MachineSpec {
  std::string id;         // [a-z0-9-]{1,40}, chosen by the caller
  std::string host_name;  // [a-z0-9-]{1,63}, neither first nor last a hyphen; empty: the id
  std::string image;      // id (sha256) of an image of the store
  double cpus = 1;        // of the guest's processes; 0.01 to 1024
  std::uint64_t memory_bytes = 256ull << 20;
  std::uint64_t disk_bytes = 1ull << 30;  // hard quota of everything that it writes
  std::uint64_t pids = 512;               // threads count
  egress::Policy network;
  // The networks that it is in, by ids that the caller chooses: [a-z0-9-]{1,40}, at most
  // egress::kMaxSharedNetworks. Machines of one caller that have one in common reach one another,
  // whatever their policies say.
  std::set<std::string> shared_networks;
  SentCap sent_cap;
};

enum class State : std::uint8_t {
  kRunning,
  kPausedInMemory,
  kPausedOnDisk,
  // Its processes have ended though nobody paused it: the agent was killed, or the host was
  // rebooted. Its disk is there: Resume starts it again. What was written and synced is on it; what
  // was not may be lost, as after a power failure.
  kStopped,
};
std::string_view NameOf(State state);  // "running", "paused_in_memory", …

struct Machine {
  std::string id;
  State state = State::kStopped;
  std::string ip;  // its own address, unique on this host; empty without a network
  std::string image;
  std::uint64_t disk_bytes = 0;
};

struct Snapshot {
  std::string id;
  std::string image;
  std::uint64_t disk_bytes = 0;    // the quota of what is restored from it, at least
  std::uint64_t stored_bytes = 0;  // what it takes on the host's disk
};

struct Stats {
  std::uint64_t memory_bytes = 0;  // of the guest's processes and the files that they have in use
  std::uint64_t memory_limit_bytes = 0;
  std::uint64_t cpu_nanoseconds = 0;  // used since it was started or resumed from disk
  std::uint64_t pids = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t disk_used_bytes = 0;
  std::uint64_t network_received_bytes = 0;  // by the machine, from outside
  std::uint64_t network_sent_bytes = 0;
};

class Driver {
 public:
  virtual ~Driver() = default;
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  virtual Capabilities capabilities() const = 0;

  // Returns when the machine's agent answers. Fails with machine.invalid (the message names the
  // field), machine.exists, machine.no_image, machine.full; on failure nothing of it is left.
  virtual Result<Machine> Create(const MachineSpec& spec) = 0;

  // Ends its processes and removes everything of it, in whatever state; an id that is unknown is
  // fine. After a failure it can be called again.
  virtual Result<void> Destroy(const std::string& id) = 0;

  // Idempotent; a pause to disk of a machine that is paused in memory moves it there, the reverse
  // leaves it. Files that were written before it are there after Resume, for kMemory also after a
  // reboot of the host. A stopped machine fails with machine.wrong_state.
  virtual Result<void> Pause(const std::string& id, Level level) = 0;
  // Idempotent. Returns when the agent answers, with the network policy that it had before. After a
  // failure the machine may run all the same, as one does whose guest holds its agent up: whoever
  // does not want that pauses it.
  virtual Result<void> Resume(const std::string& id) = 0;

  // A new machine from the parent's disk (or all of it, where the driver can and `most` lets it),
  // which must be paused (machine.wrong_state) and stays so. Of `child` the image is the parent's,
  // whatever it says; its disk is not smaller, and with memory its memory and cpus are the parent's
  // (machine.invalid). Fails with machine.not_kept when the memory cannot be had as the machine is
  // now. Else as Create.
  virtual Result<Machine> Fork(const std::string& parent, const MachineSpec& child,
                               Extent most = Extent::kFull) = 0;

  // Keeps the disk (or all, where the driver can and `most` lets it) of a machine in any state
  // under `snapshot`, an id as of machines; the machine's processes stand still meanwhile. What is
  // restored from a disk alone begins anew, and may have other memory and cpus. Fails with
  // machine.exists, machine.not_kept.
  virtual Result<Snapshot> TakeSnapshot(const std::string& id, const std::string& snapshot,
                                        Extent most = Extent::kFull) = 0;
  virtual Result<Machine> Restore(const std::string& snapshot,
                                  const MachineSpec& spec) = 0;          // Fork
  virtual Result<void> RemoveSnapshot(const std::string& snapshot) = 0;  // as Destroy
  virtual Result<std::vector<Snapshot>> ListSnapshots() = 0;

  // Grows the disk, in any state; what is not larger fails with machine.invalid.
  virtual Result<void> Resize(const std::string& id, std::uint64_t disk_bytes) = 0;

  // In one step; on failure the old rules and the old cap stand. A machine that is paused has the
  // new ones before its first instruction after Resume.
  virtual Result<void> SetNetwork(const std::string& id, const egress::Policy& policy,
                                  SentCap cap) = 0;
  Result<void> SetNetwork(const std::string& id, const egress::Policy& policy) {
    return SetNetwork(id, policy, std::nullopt);
  }

  // The networks that it is in from now on, as of MachineSpec; in one step, what it has open with
  // machines of a network that it leaves ends. Kept like the policy; a fork is in those that its
  // own spec names. Fails with machine.unsupported, machine.invalid, egress.bad_network; on failure
  // the old ones stand.
  virtual Result<void> SetSharedNetworks(const std::string& id,
                                         const std::set<std::string>& networks);

  // What was denied to it since the denial of this number (0: all that is kept), and what its rules
  // by name have let through. Numbers rise over restarts of the helper; what was kept is lost then,
  // and with a pause to disk. Empty while it has no network.
  virtual Result<egress::NetworkLog> ReadNetworkLog(const std::string& id, std::uint64_t after);

  virtual Result<Stats> ReadStats(const std::string& id) = 0;

  // What really lives, for adoption and reaping; in no order. Waits for no machine: one that is
  // being changed is told as it was before, one that is being made is left out.
  virtual Result<std::vector<Machine>> List() = 0;

  // A new connection to the machine's agent: a stream, close-on-exec. A machine that does not run
  // fails with machine.wrong_state.
  virtual Result<os::UniqueFd> Connect(const std::string& id) = 0;
};

}  // namespace caisson::machine
