// SPDX-License-Identifier: Apache-2.0
#include "machine/jail/driver.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "errors/machine.h"
#include "machine/agent_socket.h"
#include "machine/disk.h"
#include "machine/flusher.h"
#include "machine/pool.h"

namespace caisson::machine::jail {
namespace {

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
  // What the file system is larger than the disk is taken, and not by the guest (machine/disk.cc).
  const std::uint64_t headroom =
      static_cast<std::uint64_t>(file.st_size) - slot.record.spec.disk_bytes;
  return used - std::min(used, headroom);
}

// What the machines of one driver use together.
struct Yard {
  std::unique_ptr<Workshop> workshop;
  // Last: these use the workshop.
  std::unique_ptr<Pool<Slot>> pool;
  std::unique_ptr<Flusher> flusher;
};

class JailMachine final : public LocalMachine {
 public:
  JailMachine(Yard& yard, std::unique_ptr<Slot> slot) : yard_(yard), slot_(std::move(slot)) {}

  // Gives the slot its name; on failure nothing is left of it.
  static Result<std::unique_ptr<LocalMachine>> Launch(Yard& yard,
                                                      Result<std::unique_ptr<Slot>> slot,
                                                      uid_t owner, const MachineSpec& spec) {
    if (!slot) return Fail(std::move(slot).error());
    Record& record = (*slot)->record;
    record.owner = owner;
    record.spec = spec;
    record.spec.image = (*slot)->image->image.id;
    if (auto started = yard.workshop->Start(**slot, true); !started) {
      // Its record still says that it is being made: the next start tries again where this fails.
      (void)yard.workshop->Remove(**slot);
      return Fail(std::move(started).error());
    }
    return std::make_unique<JailMachine>(yard, *std::move(slot));
  }

  uid_t owner() const override { return slot_->record.owner; }
  std::uint32_t network() const override { return slot_->record.network; }
  Machine View() override {
    const Record& record = slot_->record;
    return {.id = record.spec.id,
            .state = StateOf(*slot_),
            .ip = record.ip,
            .image = record.spec.image,
            .disk_bytes = record.spec.disk_bytes};
  }

  Result<void> Remove() override;
  Result<void> Pause(Level level) override;
  Result<void> Resume() override;
  Result<std::unique_ptr<LocalMachine>> Fork(uid_t owner, const MachineSpec& child) override;
  Result<void> Keep(const std::string& directory) override;
  Result<void> Resize(std::uint64_t disk_bytes) override;
  Result<void> SetNetwork(const egress::Policy& policy) override;
  Result<void> SetSharedNetworks(const std::set<std::string>& networks) override;
  Result<Stats> ReadStats() override;
  Result<os::UniqueFd> Connect() override { return ConnectToAgent(slot_->directory); }

 private:
  Workshop& workshop() { return *yard_.workshop; }
  Result<void> Freeze();
  Result<void> StopOnDisk();

  Yard& yard_;
  std::unique_ptr<Slot> slot_;
};

Result<void> JailMachine::Remove() {
  slot_->record.phase = Phase::kRemoving;
  CAISSON_TRY(workshop().Write(*slot_, false));
  return workshop().Remove(*slot_);
}

Result<void> JailMachine::Freeze() {
  slot_->record.phase = Phase::kPausedInMemory;
  CAISSON_TRY(workshop().Write(*slot_, false));
  if (auto frozen = slot_->record.groups.Freeze(); !frozen) {
    slot_->record.phase = Phase::kRunning;
    (void)workshop().Write(*slot_, false);
    return frozen;
  }
  yard_.flusher->Add(slot_->disk());
  return {};
}

Result<void> JailMachine::StopOnDisk() {
  slot_->record.phase = Phase::kPausedOnDisk;
  CAISSON_TRY(workshop().Write(*slot_, true));
  CAISSON_TRY(workshop().Stop(*slot_));
  return SyncDisk(slot_->disk());
}

Result<void> JailMachine::Pause(Level level) {
  return level == Level::kMemory ? Freeze() : StopOnDisk();
}

Result<void> JailMachine::Resume() {
  Slot& slot = *slot_;
  if (StateOf(slot) == State::kPausedInMemory) {
    slot.record.phase = Phase::kRunning;
    CAISSON_TRY(workshop().Write(slot, false));
    return slot.record.groups.Thaw();
  }
  if (!slot.image) {
    auto held = workshop().store().Hold(slot.record.spec.image);
    if (!held) return Fail(errors::kMachineNoImage, held.error().message);
    slot.image = *std::move(held);
  }
  slot.record.phase = Phase::kPausedOnDisk;
  CAISSON_TRY(workshop().Stop(slot));  // what is left of a machine that ended by itself
  Result<void> started = workshop().Prepare(slot);
  if (started) started = workshop().Start(slot, false);
  if (!started) (void)workshop().Stop(slot);
  return started;
}

Result<std::unique_ptr<LocalMachine>> JailMachine::Fork(uid_t owner, const MachineSpec& child) {
  const MachineSpec& own = slot_->record.spec;
  auto slot = [&]() -> Result<std::unique_ptr<Slot>> {
    CAISSON_ASSIGN(const FrozenDisk frozen, FrozenDisk::Freeze(slot_->disk()));
    return workshop().Make(own.image, child.disk_bytes, slot_->disk(),
                           child.disk_bytes > own.disk_bytes);
  }();
  return Launch(yard_, std::move(slot), owner, child);
}

Result<void> JailMachine::Keep(const std::string& directory) {
  const bool running = StateOf(*slot_) == State::kRunning;
  // Still, so that files which belong together are kept together.
  if (running) CAISSON_TRY(slot_->record.groups.Freeze());
  auto kept = [&]() -> Result<void> {
    CAISSON_ASSIGN(const FrozenDisk frozen, FrozenDisk::Freeze(slot_->disk()));
    return CopyDisk(slot_->disk(), directory + "/disk.img");
  }();
  if (running) CAISSON_TRY(slot_->record.groups.Thaw());
  return kept;
}

Result<void> JailMachine::Resize(std::uint64_t disk_bytes) {
  CAISSON_TRY(GrowDisk(slot_->disk(), disk_bytes));
  slot_->record.spec.disk_bytes = disk_bytes;
  return workshop().Write(*slot_, true);
}

Result<void> JailMachine::SetNetwork(const egress::Policy& policy) {
  Record& record = slot_->record;
  if (record.network != 0) CAISSON_TRY(workshop().networks().Apply(record.network, policy));
  const egress::Policy before = std::exchange(record.spec.network, policy);
  // Durable: rules that were taken back must not come back after the host has lost its power.
  if (policy == before) return {};
  auto written = workshop().Write(*slot_, true);
  if (written) return {};
  record.spec.network = before;
  if (record.network != 0) (void)workshop().networks().Apply(record.network, before);
  return written;
}

// A helper that is killed in between leaves no network open that the record does not name.
Result<void> JailMachine::SetSharedNetworks(const std::set<std::string>& networks) {
  Record& record = slot_->record;
  const std::set<std::string> before = record.spec.shared_networks;
  record.spec.shared_networks.insert(networks.begin(), networks.end());
  if (record.spec.shared_networks != before) CAISSON_TRY(workshop().Write(*slot_, false));
  if (record.network != 0) {
    if (auto shared = workshop().networks().Share(record.network, record.owner, networks);
        !shared) {
      record.spec.shared_networks = before;
      (void)workshop().Write(*slot_, false);
      return shared;
    }
  }
  record.spec.shared_networks = networks;
  if (networks == before) return {};
  auto written = workshop().Write(*slot_, true);
  if (written) return {};
  record.spec.shared_networks = before;
  if (record.network != 0) {
    (void)workshop().networks().Share(record.network, record.owner, before);
  }
  return written;
}

Result<Stats> JailMachine::ReadStats() {
  const Record& record = slot_->record;
  NetworkTraffic traffic;
  if (record.network != 0) {
    CAISSON_ASSIGN(traffic, workshop().networks().ReadTraffic(record.network));
  }
  return Stats{.memory_bytes = record.groups.MemoryBytes(),
               .memory_limit_bytes = record.spec.memory_bytes,
               .cpu_nanoseconds = record.groups.CpuNanoseconds(),
               .pids = record.groups.Pids(),
               .disk_bytes = record.spec.disk_bytes,
               .disk_used_bytes = UsedDiskBytes(*slot_),
               .network_received_bytes = traffic.received_bytes,
               .network_sent_bytes = traffic.sent_bytes};
}

class JailDriver final : public LocalDriver {
 public:
  static Result<std::unique_ptr<LocalDriver>> Open(const JailOptions& options, SharedParts parts) {
    auto driver = std::make_unique<JailDriver>();
    driver->options_ = options;
    CAISSON_ASSIGN(driver->yard_.workshop, Workshop::Open(options.workshop, std::move(parts)));
    return driver;
  }

  Capabilities capabilities() const override {
    return {.driver = "jail",
            .isolation = "namespaces, seccomp, capabilities and cgroups of the host's kernel",
            .isolation_class = "namespaces",
            .pause = Level::kDisk,
            .disk_pause_keeps_processes = false,
            .snapshot = Extent::kFilesystem,
            .fork = Extent::kFilesystem,
            .resize_disk = true,
            .network = workshop().networks().enforces(),
            .host_name_rules = workshop().networks().enforces_names(),
            .shared_networks = workshop().networks().enforces()};
  }
  const images::Store& store() const override { return workshop().store(); }
  std::string SnapshotsDirectory() const override { return workshop().state().snapshots(); }

  Result<std::vector<std::unique_ptr<LocalMachine>>> Adopt() override {
    CAISSON_ASSIGN(std::vector<std::unique_ptr<Slot>> slots, workshop().Adopt());
    std::vector<std::unique_ptr<LocalMachine>> machines;
    machines.reserve(slots.size());
    for (std::unique_ptr<Slot>& slot : slots) {
      machines.push_back(std::make_unique<JailMachine>(yard_, std::move(slot)));
    }
    yard_.flusher = std::make_unique<Flusher>();
    yard_.pool = std::make_unique<Pool<Slot>>(
        options_.prepared, options_.threads,
        [this](const Kind& kind) { return workshop().Make(kind.image, kind.disk_bytes); },
        [this](std::unique_ptr<Slot> slot) { (void)workshop().Remove(*slot); },
        options_.not_prepared);
    return machines;
  }

  Result<std::unique_ptr<LocalMachine>> Make(uid_t owner, const MachineSpec& spec) override {
    const Kind kind{spec.image, spec.disk_bytes};
    Result<std::unique_ptr<Slot>> slot = yard_.pool->Take(kind);
    if (*slot == nullptr) slot = workshop().Make(kind.image, kind.disk_bytes);
    return JailMachine::Launch(yard_, std::move(slot), owner, spec);
  }

  Result<std::unique_ptr<LocalMachine>> Restore(const std::string& directory, const Snapshot& kept,
                                                uid_t owner, const MachineSpec& spec) override {
    return JailMachine::Launch(yard_,
                               workshop().Make(kept.image, spec.disk_bytes, directory + "/disk.img",
                                               spec.disk_bytes > kept.disk_bytes),
                               owner, spec);
  }

 private:
  Workshop& workshop() const { return *yard_.workshop; }

  JailOptions options_;
  Yard yard_;
};

}  // namespace

Result<std::unique_ptr<LocalDriver>> OpenJail(const JailOptions& options, SharedParts parts) {
  return JailDriver::Open(options, std::move(parts));
}

}  // namespace caisson::machine::jail
