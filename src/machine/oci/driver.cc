// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/driver.h"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "errors/machine.h"
#include "machine/contained_machine.h"
#include "machine/disk.h"
#include "machine/flusher.h"
#include "machine/oci/files.h"
#include "machine/oci/memory.h"
#include "machine/pool.h"

namespace caisson::machine::oci {
namespace {

constexpr const char* kMemory = "/memory";  // of a snapshot

// What the machines of one driver use together.
struct Yard {
  std::unique_ptr<Workshop> workshop;
  // Last: these use the workshop.
  std::unique_ptr<Pool<Slot>> pool;
  Flusher flusher;
};

class OciMachine final : public ContainedMachine {
 public:
  OciMachine(Yard& yard, std::unique_ptr<Slot> slot) : yard_(yard), slot_(std::move(slot)) {}

  // Starts what was made; on failure nothing is left of it.
  static Result<std::unique_ptr<LocalMachine>> Launch(Yard& yard,
                                                      Result<std::unique_ptr<Slot>> slot,
                                                      uid_t owner, const MachineSpec& spec,
                                                      const std::string& memory = {}) {
    if (!slot) return Fail(std::move(slot).error());
    Record& record = (*slot)->record;
    record.owner = owner;
    record.spec = spec;
    record.spec.image = (*slot)->image->image.id;
    if (auto started = yard.workshop->Start(**slot, true, memory); !started) {
      // Its record still says that it is being made: the next helper tries again where this fails.
      (void)yard.workshop->Remove(**slot);
      return Fail(std::move(started).error());
    }
    return std::make_unique<OciMachine>(yard, *std::move(slot));
  }

  Result<std::unique_ptr<LocalMachine>> Fork(uid_t owner, const MachineSpec& child,
                                             Extent most) override;
  Result<void> Keep(const std::string& directory, Extent most) override;
  Result<Stats> ReadStats() override {
    return StatsWith(UsedOfDisk(slot_->disk(), slot_->record.spec.disk_bytes));
  }
  Result<os::UniqueFd> Connect() override { return workshop().Connect(*slot_); }

 private:
  Workshop& workshop() const { return *yard_.workshop; }
  SlotBase& base() const override { return *slot_; }
  Networks& networks() override { return workshop().networks(); }
  std::string disk() const override { return slot_->disk(); }
  const images::Store& store() const override { return yard_.workshop->store(); }
  Flusher& flusher() override { return yard_.flusher; }
  bool Lives() override { return slot_->Lives(); }
  Result<void> TakeAway() override { return workshop().Remove(*slot_); }
  Result<void> Stop() override { return workshop().Stop(*slot_); }
  Result<void> StartAgain() override { return workshop().Start(*slot_, false); }
  Result<void> GoOn() override { return workshop().GoOn(*slot_); }

  Yard& yard_;
  std::unique_ptr<Slot> slot_;
};

Result<std::unique_ptr<LocalMachine>> OciMachine::Fork(uid_t owner, const MachineSpec& child,
                                                       Extent most) {
  const MachineSpec& own = slot_->record.spec;
  std::string memory;
  if (most == Extent::kFull && workshop().KeepsMemory(*slot_) &&
      StateNow() == State::kPausedInMemory) {
    CAISSON_TRY(workshop().KeepMemory(*slot_));
    memory = slot_->memory();
    CAISSON_TRY(workshop().CheckMemory(memory, child));
  }
  auto slot = [&]() -> Result<std::unique_ptr<Slot>> {
    CAISSON_ASSIGN(const FrozenDisk frozen, FrozenDisk::Freeze(slot_->disk()));
    return workshop().Make(own.image, child.disk_bytes, slot_->disk(),
                           child.disk_bytes > own.disk_bytes);
  }();
  return Launch(yard_, std::move(slot), owner, child, memory);
}

Result<void> OciMachine::Keep(const std::string& directory, Extent most) {
  const State state = StateNow();
  const bool lives = state == State::kRunning || state == State::kPausedInMemory;
  if (most != Extent::kFull || !lives || !workshop().KeepsMemory(*slot_)) {
    return ContainedMachine::Keep(directory, most);
  }
  const auto keep = [&]() -> Result<void> {
    CAISSON_TRY(workshop().KeepMemory(*slot_));
    const std::string memory = directory + kMemory;
    CAISSON_TRY(MakeDirectory(memory));
    CAISSON_TRY(ShareMemory(slot_->memory(), memory));
    CAISSON_ASSIGN(const FrozenDisk frozen, FrozenDisk::Freeze(slot_->disk()));
    return CopyDisk(slot_->disk(), directory + "/disk.img");
  };
  auto kept = keep();
  if (state == State::kRunning) CAISSON_TRY(workshop().GoOn(*slot_));
  return kept;
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
            .isolation = (runsc ? "gVisor, a kernel in user space ("
                                : "a container of the host's kernel (") +
                         runtime.version + ")",
            .isolation_class = runsc ? "user-space-kernel" : "container",
            .pause = Level::kDisk,
            .disk_pause_keeps_processes = false,
            .snapshot = runsc ? Extent::kFull : Extent::kFilesystem,
            .fork = runsc ? Extent::kFull : Extent::kFilesystem,
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
    std::string memory = directory + kMemory;
    if (::access(memory.c_str(), F_OK) == 0) {
      CAISSON_TRY(yard_.workshop->CheckMemory(memory, spec));
    } else {
      memory.clear();
    }
    return OciMachine::Launch(
        yard_,
        yard_.workshop->Make(kept.image, spec.disk_bytes, directory + "/disk.img",
                             spec.disk_bytes > kept.disk_bytes),
        owner, spec, memory);
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
  if (!kind) {
    return Fail(
        errors::kMachineInvalid,
        "machines run in runsc, runc, podman or docker, not in \"" + std::string(name) + "\"");
  }
  return ProbeRuntime(*kind);
}

Result<std::unique_ptr<LocalDriver>> OpenOci(const OciOptions& options, SharedParts parts) {
  CAISSON_ASSIGN(std::unique_ptr<Workshop> workshop,
                 Workshop::Open(options.workshop, options.runtime, std::move(parts)));
  return std::make_unique<OciDriver>(std::move(workshop), options);
}

}  // namespace caisson::machine::oci
