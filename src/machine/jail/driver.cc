// SPDX-License-Identifier: Apache-2.0
#include "machine/jail/driver.h"

#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "machine/agent_socket.h"
#include "machine/contained_machine.h"
#include "machine/disk.h"
#include "machine/flusher.h"
#include "machine/pool.h"

namespace caisson::machine::jail {
namespace {

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

class JailMachine final : public ContainedMachine {
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

  Result<std::unique_ptr<LocalMachine>> Fork(uid_t owner, const MachineSpec& child,
                                             Extent most) override;
  Result<Stats> ReadStats() override { return StatsWith(UsedDiskBytes(*slot_)); }
  Result<os::UniqueFd> Connect() override { return ConnectToAgent(slot_->directory); }

 private:
  Workshop& workshop() { return *yard_.workshop; }
  SlotBase& base() const override { return *slot_; }
  Networks& networks() override { return workshop().networks(); }
  std::string disk() const override { return slot_->disk(); }
  const images::Store& store() const override { return yard_.workshop->store(); }
  Flusher& flusher() override { return *yard_.flusher; }
  bool Lives() override { return slot_->Lives(); }
  Result<void> TakeAway() override { return workshop().Remove(*slot_); }
  Result<void> Stop() override { return workshop().Stop(*slot_); }
  Result<void> StartAgain() override {
    Result<void> started = workshop().Prepare(*slot_);
    if (started) started = workshop().Start(*slot_, false);
    if (!started) (void)workshop().Stop(*slot_);
    return started;
  }

  Yard& yard_;
  std::unique_ptr<Slot> slot_;
};

Result<std::unique_ptr<LocalMachine>> JailMachine::Fork(uid_t owner, const MachineSpec& child,
                                                        Extent) {
  const MachineSpec& own = slot_->record.spec;
  auto slot = [&]() -> Result<std::unique_ptr<Slot>> {
    CAISSON_ASSIGN(const FrozenDisk frozen, FrozenDisk::Freeze(slot_->disk()));
    return workshop().Make(own.image, child.disk_bytes, slot_->disk(),
                           child.disk_bytes > own.disk_bytes);
  }();
  return Launch(yard_, std::move(slot), owner, child);
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
