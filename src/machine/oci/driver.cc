// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/driver.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "errors/machine.h"
#include "machine/disk.h"
#include "machine/flusher.h"
#include "machine/pool.h"

namespace caisson::machine::oci {
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

// What the machines of one driver use together.
struct Yard {
  std::unique_ptr<Workshop> workshop;
  // Last: these use the workshop.
  std::unique_ptr<Pool<Slot>> pool;
  Flusher flusher;
};

class OciMachine final : public LocalMachine {
 public:
  OciMachine(Yard& yard, std::unique_ptr<Slot> slot) : yard_(yard), slot_(std::move(slot)) {}

  // Starts what was made; on failure nothing is left of it.
  static Result<std::unique_ptr<LocalMachine>> Launch(Yard& yard,
                                                      Result<std::unique_ptr<Slot>> slot,
                                                      uid_t owner, const MachineSpec& spec) {
    if (!slot) return Fail(std::move(slot).error());
    Record& record = (*slot)->record;
    record.owner = owner;
    record.spec = spec;
    record.spec.image = (*slot)->image->image.id;
    if (auto started = yard.workshop->Start(**slot, true); !started) {
      // Its record still says that it is being made: the next helper tries again where this fails.
      (void)yard.workshop->Remove(**slot);
      return Fail(std::move(started).error());
    }
    return std::make_unique<OciMachine>(yard, *std::move(slot));
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

  Result<void> Remove() override {
    slot_->record.phase = Phase::kRemoving;
    CAISSON_TRY(workshop().Write(*slot_, false));
    return workshop().Remove(*slot_);
  }
  Result<void> Pause(Level level) override {
    return level == Level::kMemory ? Freeze() : StopOnDisk();
  }
  Result<void> Resume() override;
  Result<std::unique_ptr<LocalMachine>> Fork(uid_t owner, const MachineSpec& child) override;
  Result<void> Keep(const std::string& directory) override;
  Result<void> Resize(std::uint64_t disk_bytes) override;
  Result<void> SetNetwork(const egress::Policy& policy) override;
  Result<void> SetSharedNetworks(const std::set<std::string>& networks) override;
  Result<Stats> ReadStats() override;
  Result<os::UniqueFd> Connect() override { return workshop().Connect(*slot_); }

 private:
  Workshop& workshop() { return *yard_.workshop; }
  Result<void> Freeze();
  Result<void> StopOnDisk();

  Yard& yard_;
  std::unique_ptr<Slot> slot_;
};

Result<void> OciMachine::Freeze() {
  slot_->record.phase = Phase::kPausedInMemory;
  CAISSON_TRY(workshop().Write(*slot_, false));
  if (auto frozen = slot_->record.groups.Freeze(); !frozen) {
    slot_->record.phase = Phase::kRunning;
    (void)workshop().Write(*slot_, false);
    return frozen;
  }
  yard_.flusher.Add(slot_->disk());
  return {};
}

Result<void> OciMachine::StopOnDisk() {
  slot_->record.phase = Phase::kPausedOnDisk;
  CAISSON_TRY(workshop().Write(*slot_, true));
  CAISSON_TRY(workshop().Stop(*slot_));
  return SyncDisk(slot_->disk());
}

Result<void> OciMachine::Resume() {
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
  return workshop().Start(slot, false);
}

Result<std::unique_ptr<LocalMachine>> OciMachine::Fork(uid_t owner, const MachineSpec& child) {
  const MachineSpec& own = slot_->record.spec;
  auto slot = [&]() -> Result<std::unique_ptr<Slot>> {
    CAISSON_ASSIGN(const FrozenDisk frozen, FrozenDisk::Freeze(slot_->disk()));
    return workshop().Make(own.image, child.disk_bytes, slot_->disk(),
                           child.disk_bytes > own.disk_bytes);
  }();
  return Launch(yard_, std::move(slot), owner, child);
}

Result<void> OciMachine::Keep(const std::string& directory) {
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

Result<void> OciMachine::Resize(std::uint64_t disk_bytes) {
  CAISSON_TRY(GrowDisk(slot_->disk(), disk_bytes));
  slot_->record.spec.disk_bytes = disk_bytes;
  return workshop().Write(*slot_, true);
}

Result<void> OciMachine::SetNetwork(const egress::Policy& policy) {
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
Result<void> OciMachine::SetSharedNetworks(const std::set<std::string>& networks) {
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

Result<Stats> OciMachine::ReadStats() {
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
               .disk_used_bytes = UsedOfDisk(slot_->disk(), record.spec.disk_bytes),
               .network_received_bytes = traffic.received_bytes,
               .network_sent_bytes = traffic.sent_bytes};
}

class OciDriver final : public LocalDriver {
 public:
  OciDriver(std::unique_ptr<Workshop> workshop, const OciOptions& options)
      : prepared_(workshop->CanWait() ? options.prepared : 0),
        threads_(options.threads),
        not_prepared_(options.not_prepared) {
    yard_.workshop = std::move(workshop);
  }

  Capabilities capabilities() const override {
    const Runtime& runtime = yard_.workshop->runtime();
    const bool runsc = runtime.kind == RuntimeKind::kRunsc;
    return {.driver = "oci",
            .isolation = runsc ? "gVisor, a kernel in user space (" + runtime.version + ")"
                               : "a container of the host's kernel (" + runtime.version + ")",
            .isolation_class = runsc ? "user-space-kernel" : "container",
            .pause = Level::kDisk,
            .disk_pause_keeps_processes = false,
            .snapshot = Extent::kFilesystem,
            .fork = Extent::kFilesystem,
            .resize_disk = true,
            .network = yard_.workshop->networks().enforces(),
            .host_name_rules = yard_.workshop->networks().enforces_names(),
            .shared_networks = yard_.workshop->networks().enforces()};
  }
  const images::Store& store() const override { return yard_.workshop->store(); }
  std::string SnapshotsDirectory() const override { return yard_.workshop->state().snapshots(); }

  Result<std::vector<std::unique_ptr<LocalMachine>>> Adopt() override {
    CAISSON_ASSIGN(std::vector<std::unique_ptr<Slot>> slots, yard_.workshop->Adopt());
    std::vector<std::unique_ptr<LocalMachine>> machines;
    for (std::unique_ptr<Slot>& slot : slots) {
      machines.push_back(std::make_unique<OciMachine>(yard_, std::move(slot)));
    }
    yard_.pool = std::make_unique<Pool<Slot>>(
        prepared_, threads_, [this](const Kind& kind) { return MakeReady(kind); },
        [this](std::unique_ptr<Slot> slot) { (void)yard_.workshop->Remove(*slot); }, not_prepared_);
    return machines;
  }

  Result<std::unique_ptr<LocalMachine>> Make(uid_t owner, const MachineSpec& spec) override {
    const Kind kind{spec.image, spec.disk_bytes};
    Result<std::unique_ptr<Slot>> slot = yard_.pool->Take(kind);
    if (*slot != nullptr && !(*slot)->Lives()) {
      (void)yard_.workshop->Remove(**slot);
      slot->reset();
    }
    if (*slot == nullptr) slot = yard_.workshop->Make(kind.image, kind.disk_bytes);
    return OciMachine::Launch(yard_, std::move(slot), owner, spec);
  }

  Result<std::unique_ptr<LocalMachine>> Restore(const std::string& directory, const Snapshot& kept,
                                                uid_t owner, const MachineSpec& spec) override {
    return OciMachine::Launch(
        yard_,
        yard_.workshop->Make(kept.image, spec.disk_bytes, directory + "/disk.img",
                             spec.disk_bytes > kept.disk_bytes),
        owner, spec);
  }

 private:
  Result<std::unique_ptr<Slot>> MakeReady(const Kind& kind) {
    CAISSON_ASSIGN(std::unique_ptr<Slot> slot, yard_.workshop->Make(kind.image, kind.disk_bytes));
    if (auto ready = yard_.workshop->Ready(*slot); !ready) {
      (void)yard_.workshop->Remove(*slot);
      return Fail(std::move(ready).error());
    }
    return slot;
  }

  const std::size_t prepared_;
  const std::size_t threads_;
  const std::function<void(const Status&)> not_prepared_;
  Yard yard_;
};

}  // namespace

Result<Runtime> ChooseRuntime(std::string_view name) {
  if (name == "auto") {
    auto runsc = ProbeRuntime(RuntimeKind::kRunsc);
    return runsc ? std::move(runsc) : ProbeRuntime(RuntimeKind::kRunc);
  }
  const auto kind = FindRuntimeKind(name);
  if (!kind || !TakesBundles(*kind)) {
    return Fail(errors::kMachineInvalid,
                "machines run in runsc or runc, not in \"" + std::string(name) + "\"");
  }
  return ProbeRuntime(*kind);
}

Result<std::unique_ptr<LocalDriver>> OpenOci(const OciOptions& options, SharedParts parts) {
  CAISSON_ASSIGN(std::unique_ptr<Workshop> workshop,
                 Workshop::Open(options.workshop, options.runtime, std::move(parts)));
  return std::make_unique<OciDriver>(std::move(workshop), options);
}

}  // namespace caisson::machine::oci
