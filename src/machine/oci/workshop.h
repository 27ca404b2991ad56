// SPDX-License-Identifier: Apache-2.0
// Everything that one machine in a container has of the host: directory, disk, cgroups, network,
// processes. Made and removed here, in an order in which the record always knows more than there
// is. Needs root. A Slot is not synchronised; a Workshop is thread-safe.
//
//   <directory>/disk.img      see machine/disk.h
//   <directory>/record.json
//   <directory>/agent.sock    all but runsc: where the agent takes connections
//   <directory>/bundle/       config.json, pid, messages; of an engine: handover/, seccomp.json
//   <directory>/runtime/      the runtime's own state
//   <directory>/memory/       gVisor: see oci/memory.h; the machine stands still inside
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "images/store.h"
#include "machine/local.h"
#include "machine/oci/engine_launch.h"
#include "machine/oci/runtime.h"
#include "machine/root.h"
#include "machine/slot.h"
#include "machine/state.h"
#include "os/fd.h"

namespace caisson::machine::oci {

struct Slot : SlotBase {
  os::UniqueFd agent;  // pidfd, while it runs: of the agent; runsc: of gVisor's kernel

  bool is_named() const { return !record.spec.id.empty(); }

  std::string disk() const { return directory + "/disk.img"; }
  std::string bundle() const { return directory + "/bundle"; }
  std::string runtime() const { return directory + "/runtime"; }
  std::string memory() const { return directory + "/memory"; }
  // Of what runs, or ran last: another helper may have been told to use another one.
  RuntimeKind kind() const;
  // Whether the machine's process is there. Reaps it when it has ended as our child.
  bool Lives();
};

struct WorkshopOptions {
  std::string state;   // directory; absolute, ours alone
  std::string images;  // the store's
  std::string agent;   // program
  std::string init;    // program caisson-container-init, for Docker and Podman
};

class Workshop {
 public:
  static Result<std::unique_ptr<Workshop>> Open(const WorkshopOptions& options, Runtime runtime,
                                                SharedParts parts);

  // A slot with a disk: an empty one, or a copy of `source` that is grown to that size. On failure
  // nothing is left.
  Result<std::unique_ptr<Slot>> Make(const std::string& image, std::uint64_t disk_bytes,
                                     const std::string& source = {}, bool grow = false);
  // Whether Ready can be done: gVisor's name of the host is given once, when it is started.
  bool CanWait() const { return !IsRunsc(); }
  // Starts what can be started of a slot that is for nobody yet: its agent waits, without limits of
  // its own, and reaches nothing. On failure there is only the disk.
  Result<void> Ready(Slot& slot) { return Boot(slot, true, {}); }
  // Starts the machine of a slot with a disk, which may be ready, as its record's spec says. The
  // record says "running" when this returns, and the agent takes connections. On failure there is
  // only the disk.
  // `memory`: not empty: of another machine of gVisor, whose disk this one has a copy of.
  Result<void> Start(Slot& slot, bool first_time, const std::string& memory = {});
  // Writes memory and processes of a machine of gVisor that runs or is frozen into slot.memory();
  // it stands still, frozen, when this returns, until GoOn. Its agent lets its socket go for that,
  // and with commands or streams open from outside this fails with machine.not_kept, as where
  // gVisor cannot write something (a deleted file that is open, a TCP connection). Whatever fails,
  // the machine is frozen.
  Result<void> KeepMemory(Slot& slot);
  // Whether that can be done of what runs in this slot.
  bool KeepsMemory(const Slot& slot) const {
    return IsRunsc() && slot.kind() == RuntimeKind::kRunsc;
  }
  // Lets a frozen machine go on, whatever a KeepMemory (that may have been cut off) has left.
  Result<void> GoOn(Slot& slot);
  // Whether a machine of this spec can go on from such a directory, here.
  Result<void> CheckMemory(const std::string& directory, const MachineSpec& spec) const;
  // Ends what runs and takes back cgroups and network; the disk stays, and nothing uses it.
  Result<void> Stop(Slot& slot);
  // Removes everything. Can be called again after a failure.
  Result<void> Remove(Slot& slot);

  // What is there of earlier runs: machines as their records have them, with their processes held.
  // What was being made or removed is removed. Call it first.
  Result<std::vector<std::unique_ptr<Slot>>> Adopt();

  Result<os::UniqueFd> Connect(const Slot& slot) const;
  Networks& networks() { return *parts_.networks; }
  const images::Store& store() const { return store_; }
  const StateDirectory& state() const { return state_; }
  const Runtime& runtime() const { return runtime_; }

 private:
  Workshop(SharedParts parts, images::Store store, StateDirectory state, Runtime runtime)
      : parts_(std::move(parts)),
        store_(std::move(store)),
        state_(std::move(state)),
        runtime_(std::move(runtime)) {}
  bool IsRunsc() const { return runtime_.kind == RuntimeKind::kRunsc; }
  bool IsEngine() const { return !TakesBundles(runtime_.kind); }
  Result<void> OpenEngine(const std::string& init);
  Result<void> MakeDiskOf(const Slot& slot, const std::string& source, bool grow) const;
  Result<void> Boot(Slot& slot, bool first_time, const std::string& memory);
  Result<void> CallRuntime(const Slot& slot, std::vector<std::string> words) const;
  Result<void> WriteMemory(const Slot& slot) const;
  Result<void> WakeAgent(const Slot& slot) const;
  Result<void> Identify(const Slot& slot) const;
  Result<void> Enforce(const Slot& slot) const;
  Result<void> Name(const Slot& slot) const;
  RootFiles FilesOf(const Slot& slot, bool first_time) const;
  Result<pid_t> Launch(Slot& slot, bool first_time, const std::string& network,
                       const std::string& memory);
  Result<pid_t> LaunchInEngine(Slot& slot, bool first_time, const std::string& network);
  Result<void> HoldProcess(Slot& slot, pid_t pid) const;
  Result<void> RemoveContainer(const Slot& slot) const;
  Result<void> SweepContainers(const std::vector<std::string>& known) const;
  Result<void> AwaitAgent(const Slot& slot) const;
  // Processes, cgroups, network.
  Result<void> TakeBack(Slot& slot);
  Result<std::unique_ptr<Slot>> AdoptOne(const std::string& name);
  Result<void> AdoptRunning(Slot& slot);
  Result<void> SetAside(const std::string& name);

  const SharedParts parts_;
  images::Store store_;
  StateDirectory state_;
  Runtime runtime_;
  std::string agent_;
  std::string place_;  // see Launch
  std::optional<RootBuilder> roots_;
  std::optional<EngineLauncher> engine_;  // of Docker and Podman
};

}  // namespace caisson::machine::oci
