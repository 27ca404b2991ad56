// SPDX-License-Identifier: Apache-2.0
#include "machine/jail/machines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <stop_token>
#include <thread>
#include <utility>

#include "errors/machine.h"
#include "machine/jail/disk.h"
#include "os/syscall_error.h"

namespace caisson::machine::jail {
namespace {

std::unexpected<Status> Unknown(const std::string& id) {
  return Fail(errors::kMachineUnknown, "there is no machine " + id);
}

std::unexpected<Status> WrongState(const Machine& machine, const std::string& needs) {
  return Fail(errors::kMachineWrongState,
              fmt::format("machine {} is {}; {}", machine.id, NameOf(machine.state), needs));
}

State StateOf(Slot& slot) {
  switch (slot.record.phase) {
    case Phase::kRunning:
      return slot.Lives() ? State::kRunning : State::kStopped;
    case Phase::kPausedInMemory:
      return slot.Lives() ? State::kPausedInMemory : State::kPausedOnDisk;
    case Phase::kPausedOnDisk:
      return State::kPausedOnDisk;
    case Phase::kMaking:
    case Phase::kRemoving:
      break;
  }
  return State::kStopped;
}

std::uint64_t UsedDiskBytes(Slot& slot) {
  struct stat file{};
  if (::stat(slot.disk().c_str(), &file) != 0) return 0;
  if (!slot.Lives()) return static_cast<std::uint64_t>(file.st_blocks) * 512;
  // The agent is process 1 there, which nobody inside can exchange; its root is the overlay, which
  // answers for the disk.
  struct statfs info{};
  const std::string root = "/proc/" + std::to_string(slot.record.agent) + "/root";
  if (::statfs(root.c_str(), &info) != 0) return 0;
  const auto used = (info.f_blocks - info.f_bfree) * static_cast<std::uint64_t>(info.f_bsize);
  // What the file system is larger than the disk is taken, and not by the guest (jail/disk.cc).
  const std::uint64_t headroom =
      static_cast<std::uint64_t>(file.st_size) - slot.record.spec.disk_bytes;
  return used - std::min(used, headroom);
}

}  // namespace

Machine ViewOf(Slot& slot) {
  const Record& record = slot.record;
  return {.id = record.spec.id,
          .state = StateOf(slot),
          .ip = record.ip,
          .image = record.spec.image,
          .disk_bytes = record.spec.disk_bytes};
}

class Flusher {
 public:
  Flusher() : thread_([this](const std::stop_token& stop) { Run(stop); }) {}
  void Add(std::string disk) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(disk));
    work_.notify_one();
  }

 private:
  void Run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (work_.wait(lock, stop, [this] { return !waiting_.empty(); })) {
      const std::string disk = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      (void)SyncDisk(disk);  // it may be gone by now
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable_any work_;
  std::deque<std::string> waiting_;
  std::jthread thread_;
};

Machines::Machines() = default;
Machines::~Machines() = default;

Result<std::unique_ptr<Machines>> Machines::Open(const MachinesOptions& options,
                                                 std::unique_ptr<Networks> networks) {
  std::unique_ptr<Machines> machines(new Machines());
  CAISSON_ASSIGN(machines->workshop_, Workshop::Open(options.workshop, std::move(networks)));
  Workshop& workshop = *machines->workshop_;
  CAISSON_TRY(machines->Adopt());
  CAISSON_ASSIGN(machines->snapshots_,
                 Snapshots::Open(workshop.SnapshotsDirectory(), workshop.store()));
  machines->flusher_ = std::make_unique<Flusher>();
  machines->pool_ = std::make_unique<Pool>(
      options.prepared, options.threads,
      [&workshop](const Kind& kind) { return workshop.Make(kind.image, kind.disk_bytes); },
      [&workshop](std::unique_ptr<Slot> slot) { (void)workshop.Remove(*slot); });
  return machines;
}

Result<void> Machines::Adopt() {
  CAISSON_ASSIGN(std::vector<std::unique_ptr<Slot>> slots, workshop_->Adopt());
  for (std::unique_ptr<Slot>& slot : slots) {
    auto entry = std::make_shared<Entry>();
    entry->owner = slot->record.owner;
    const std::string id = slot->record.spec.id;
    entry->slot = std::move(slot);
    machines_.emplace(id, std::move(entry));
  }
  return {};
}

Capabilities Machines::capabilities() const {
  return {.driver = "jail",
          .isolation = "namespaces, seccomp, capabilities and cgroups of the host's kernel",
          .pause = Level::kDisk,
          .disk_pause_keeps_processes = false,
          .snapshot = Extent::kFilesystem,
          .fork = Extent::kFilesystem,
          .resize_disk = true,
          .network = workshop_->networks().enforces(),
          .host_name_rules = false};
}

Result<Machines::Locked> Machines::Find(uid_t caller, const std::string& id) {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    const auto found = machines_.find(id);
    if (found == machines_.end() || found->second->owner != caller) return Unknown(id);
    entry = found->second;
  }
  std::unique_lock lock(entry->mutex);
  if (entry->slot == nullptr) return Unknown(id);
  return Locked{std::move(entry), std::move(lock)};
}

Result<void> Machines::CheckNetwork(const egress::Policy& policy) const {
  const bool opens =
      policy.opens_public() || !policy.OpenOnAllPorts().empty() || !policy.OpenOnPorts().empty();
  if (!opens || workshop_->networks().enforces()) return {};
  return Fail(errors::kMachineUnsupported,
              "machines have no network here (caisson machined --without-network): ask for none");
}

template <typename MakeSlot>
Result<Machine> Machines::Enter(uid_t caller, MachineSpec spec, MakeSlot make) {
  CAISSON_TRY(CheckSpec(spec));
  CAISSON_TRY(CheckNetwork(spec.network));
  auto entry = std::make_shared<Entry>();
  entry->owner = caller;
  const std::lock_guard made(entry->mutex);
  {
    const std::lock_guard lock(mutex_);
    if (!machines_.emplace(spec.id, entry).second) {
      return Fail(errors::kMachineExists, "there is a machine " + spec.id + " already");
    }
  }
  auto slot = make();
  Result<void> launched;
  if (slot) launched = Launch(**slot, caller, spec);
  if (!slot || !launched) {
    Status status = slot ? std::move(launched).error() : std::move(slot).error();
    // Its record still says that it is being made: the next start tries again where this fails.
    if (slot) (void)workshop_->Remove(**slot);
    const std::lock_guard lock(mutex_);
    machines_.erase(spec.id);
    return Fail(std::move(status));
  }
  entry->slot = *std::move(slot);
  return ViewOf(*entry->slot);
}

Result<void> Machines::Launch(Slot& slot, uid_t caller, const MachineSpec& spec) {
  slot.record.owner = caller;
  slot.record.spec = spec;
  slot.record.spec.image = slot.image->image.id;
  return workshop_->Start(slot, true);
}

Result<Machine> Machines::Create(uid_t caller, MachineSpec spec) {
  const Kind kind{spec.image, spec.disk_bytes};
  return Enter(caller, std::move(spec), [&]() -> Result<std::unique_ptr<Slot>> {
    if (auto prepared = pool_->Take(kind)) return prepared;
    return workshop_->Make(kind.image, kind.disk_bytes);
  });
}

Result<void> Machines::Destroy(uid_t caller, const std::string& id) {
  auto found = Find(caller, id);
  if (!found) return {};
  Slot& slot = found->slot();
  slot.record.phase = Phase::kRemoving;
  CAISSON_TRY(workshop_->Write(slot, false));
  CAISSON_TRY(workshop_->Remove(slot));
  found->entry->slot.reset();
  const std::lock_guard lock(mutex_);
  machines_.erase(id);
  return {};
}

Result<void> Machines::Freeze(Slot& slot) {
  slot.record.phase = Phase::kPausedInMemory;
  CAISSON_TRY(workshop_->Write(slot, false));
  if (auto frozen = slot.record.groups.Freeze(); !frozen) {
    slot.record.phase = Phase::kRunning;
    (void)workshop_->Write(slot, false);
    return frozen;
  }
  flusher_->Add(slot.disk());
  return {};
}

Result<void> Machines::StopOnDisk(Slot& slot) {
  slot.record.phase = Phase::kPausedOnDisk;
  CAISSON_TRY(workshop_->Write(slot, true));
  CAISSON_TRY(workshop_->Stop(slot));
  return SyncDisk(slot.disk());
}

Result<void> Machines::Pause(uid_t caller, const std::string& id, Level level) {
  CAISSON_ASSIGN(const Locked found, Find(caller, id));
  const Machine view = ViewOf(found.slot());
  switch (view.state) {
    case State::kStopped:
      return WrongState(view, "resume it first, or destroy it");
    case State::kPausedOnDisk:
      return {};
    case State::kPausedInMemory:
      if (level == Level::kMemory) return {};
      break;
    case State::kRunning:
      break;
  }
  if (level == Level::kMemory) return Freeze(found.slot());
  if (level == Level::kDisk) return StopOnDisk(found.slot());
  return Fail(errors::kMachineInvalid, "a pause is to memory or to disk");
}

Result<void> Machines::Resume(uid_t caller, const std::string& id) {
  CAISSON_ASSIGN(const Locked found, Find(caller, id));
  Slot& slot = found.slot();
  switch (StateOf(slot)) {
    case State::kRunning:
      return {};
    case State::kPausedInMemory:
      slot.record.phase = Phase::kRunning;
      CAISSON_TRY(workshop_->Write(slot, false));
      return slot.record.groups.Thaw();
    case State::kPausedOnDisk:
    case State::kStopped:
      break;
  }
  if (!slot.image) {
    auto held = workshop_->store().Hold(slot.record.spec.image);
    if (!held) return Fail(errors::kMachineNoImage, held.error().message);
    slot.image = *std::move(held);
  }
  slot.record.phase = Phase::kPausedOnDisk;
  CAISSON_TRY(workshop_->Stop(slot));  // what is left of a machine that ended by itself
  Result<void> started = workshop_->Prepare(slot);
  if (started) started = workshop_->Start(slot, false);
  if (!started) (void)workshop_->Stop(slot);
  return started;
}

Result<Machine> Machines::Fork(uid_t caller, const std::string& parent, MachineSpec child) {
  CAISSON_ASSIGN(const Locked found, Find(caller, parent));
  const Machine view = ViewOf(found.slot());
  if (view.state != State::kPausedInMemory && view.state != State::kPausedOnDisk) {
    return WrongState(view, "pause it before it is forked");
  }
  child.image = view.image;
  if (child.disk_bytes < view.disk_bytes) {
    return Fail(errors::kMachineInvalid,
                fmt::format("disk_bytes is at least the parent's, {}", view.disk_bytes));
  }
  const std::uint64_t bytes = child.disk_bytes;
  return Enter(caller, std::move(child), [&]() -> Result<std::unique_ptr<Slot>> {
    CAISSON_ASSIGN(const FrozenDisk frozen, FrozenDisk::Freeze(found.slot().disk()));
    return workshop_->Make(view.image, bytes, found.slot().disk(), bytes > view.disk_bytes);
  });
}

Result<Snapshot> Machines::TakeSnapshot(uid_t caller, const std::string& id,
                                        const std::string& snapshot) {
  CAISSON_ASSIGN(const Locked found, Find(caller, id));
  Slot& slot = found.slot();
  const Machine view = ViewOf(slot);
  const bool running = view.state == State::kRunning;
  // Still, so that files which belong together are kept together.
  if (running) CAISSON_TRY(slot.record.groups.Freeze());
  auto taken = [&]() -> Result<Snapshot> {
    CAISSON_ASSIGN(const FrozenDisk frozen, FrozenDisk::Freeze(slot.disk()));
    const std::lock_guard lock(snapshots_mutex_);
    return snapshots_->Take(caller, snapshot, view.image, view.disk_bytes, slot.disk());
  }();
  if (running) CAISSON_TRY(slot.record.groups.Thaw());
  return taken;
}

Result<Machine> Machines::Restore(uid_t caller, const std::string& snapshot, MachineSpec spec) {
  const std::shared_lock lock(snapshots_mutex_);
  CAISSON_ASSIGN(const Snapshot kept, snapshots_->Find(caller, snapshot));
  spec.image = kept.image;
  if (spec.disk_bytes < kept.disk_bytes) {
    return Fail(errors::kMachineInvalid,
                fmt::format("disk_bytes is at least the snapshot's, {}", kept.disk_bytes));
  }
  const std::uint64_t bytes = spec.disk_bytes;
  return Enter(caller, std::move(spec), [&]() -> Result<std::unique_ptr<Slot>> {
    return workshop_->Make(kept.image, bytes, snapshots_->DiskOf(snapshot),
                           bytes > kept.disk_bytes);
  });
}

Result<void> Machines::RemoveSnapshot(uid_t caller, const std::string& snapshot) {
  const std::lock_guard lock(snapshots_mutex_);
  return snapshots_->Remove(caller, snapshot);
}

Result<std::vector<Snapshot>> Machines::ListSnapshots(uid_t caller) {
  const std::shared_lock lock(snapshots_mutex_);
  return snapshots_->List(caller);
}

Result<void> Machines::Resize(uid_t caller, const std::string& id, std::uint64_t disk_bytes) {
  CAISSON_ASSIGN(const Locked found, Find(caller, id));
  Record& record = found.record();
  if (disk_bytes <= record.spec.disk_bytes || disk_bytes > kMaxDiskBytes) {
    return Fail(errors::kMachineInvalid, fmt::format("a disk can only grow, from {} to {} at most",
                                                     record.spec.disk_bytes, kMaxDiskBytes));
  }
  CAISSON_TRY(GrowDisk(found.slot().disk(), disk_bytes));
  record.spec.disk_bytes = disk_bytes;
  return workshop_->Write(found.slot(), true);
}

Result<void> Machines::SetNetwork(uid_t caller, const std::string& id,
                                  const egress::Policy& policy) {
  CAISSON_ASSIGN(const Locked found, Find(caller, id));
  CAISSON_TRY(CheckNetwork(policy));
  Record& record = found.record();
  if (record.network != 0) CAISSON_TRY(workshop_->networks().Apply(record.network, policy));
  record.spec.network = policy;
  return workshop_->Write(found.slot(), false);
}

Result<Stats> Machines::ReadStats(uid_t caller, const std::string& id) {
  CAISSON_ASSIGN(const Locked found, Find(caller, id));
  const Record& record = found.record();
  NetworkTraffic traffic;
  if (record.network != 0) {
    CAISSON_ASSIGN(traffic, workshop_->networks().ReadTraffic(record.network));
  }
  return Stats{.memory_bytes = record.groups.MemoryBytes(),
               .memory_limit_bytes = record.spec.memory_bytes,
               .cpu_nanoseconds = record.groups.CpuNanoseconds(),
               .pids = record.groups.Pids(),
               .disk_bytes = record.spec.disk_bytes,
               .disk_used_bytes = UsedDiskBytes(found.slot()),
               .network_received_bytes = traffic.received_bytes,
               .network_sent_bytes = traffic.sent_bytes};
}

Result<std::vector<Machine>> Machines::List(uid_t caller) {
  std::vector<std::shared_ptr<Entry>> entries;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : machines_) {
      if (entry->owner == caller) entries.push_back(entry);
    }
  }
  std::vector<Machine> list;
  for (const std::shared_ptr<Entry>& entry : entries) {
    const std::lock_guard lock(entry->mutex);
    if (entry->slot != nullptr) list.push_back(ViewOf(*entry->slot));
  }
  return list;
}

Result<os::UniqueFd> Machines::Connect(uid_t caller, const std::string& id) {
  CAISSON_ASSIGN(const Locked found, Find(caller, id));
  const Machine view = ViewOf(found.slot());
  if (view.state != State::kRunning) return WrongState(view, "resume it first");
  return workshop_->Connect(found.slot());
}

}  // namespace caisson::machine::jail
