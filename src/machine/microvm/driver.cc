// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/driver.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "errors/machine.h"
#include "images/files.h"
#include "json/reader.h"
#include "json/writer.h"
#include "machine/agent_socket.h"
#include "machine/disk.h"
#include "machine/fields.h"
#include "machine/microvm/process.h"
#include "machine/microvm/templates.h"
#include "machine/pool.h"
#include "machine/recorded_machine.h"
#include "os/syscall_error.h"

namespace caisson::machine::microvm {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kStopPatience{60'000};
constexpr milliseconds kSavePatience{180'000};
constexpr milliseconds kGoOnPatience{60'000};
constexpr const char* kVmFile = "/vm.json";
constexpr std::array<const char*, 2> kSavedFiles = {"memory", "state"};

// What was saved goes on in the same machine only.
struct Kept {
  std::string boot;  // id of the boot files
  std::string accelerator;
  std::uint64_t memory_bytes = 0;
  unsigned processors = 0;
  bool network = false;
  bool has_memory = false;  // else only the disk was kept
};

Result<void> WriteKept(const std::string& directory, const Kept& kept) {
  CAISSON_ASSIGN(const std::string text,
                 json::Write(json::Object{{"boot", kept.boot},
                                          {"accelerator", kept.accelerator},
                                          {"memory_bytes", kept.memory_bytes},
                                          {"processors", kept.processors},
                                          {"network", kept.network},
                                          {"has_memory", kept.has_memory}}));
  return images::WriteFile(directory + kVmFile, text);
}

Result<Kept> ReadKept(const std::string& directory) {
  CAISSON_ASSIGN(const std::string text, os::ReadSmallFile(directory + kVmFile));
  CAISSON_ASSIGN(const json::Value value, json::Read(text));
  Fields fields(value);
  Kept kept{.boot = fields.Text("boot"),
            .accelerator = fields.Text("accelerator"),
            .memory_bytes = fields.Number("memory_bytes"),
            .processors = static_cast<unsigned>(fields.Number("processors", 1024)),
            .network = fields.Bool("network"),
            .has_memory = fields.Bool("has_memory")};
  if (!fields.missed().empty()) {
    return Fail(errors::kMachineDamaged, directory + kVmFile + " has no valid " + fields.missed());
  }
  return kept;
}

// Both stay what they are: saved files are never written again.
Result<void> LinkOrCopy(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return {};
  CAISSON_TRY(CopyDisk(from, to));
  return Yard::TakeBack(to);
}

Result<void> LinkSaved(const std::string& from, const std::string& to) {
  for (const char* file : kSavedFiles) {
    CAISSON_TRY(LinkOrCopy(from + "/" + file, to + "/" + file));
  }
  return {};
}

bool HasSaved(const std::string& directory) {
  for (const char* file : kSavedFiles) {
    if (::access((directory + "/" + file).c_str(), R_OK) != 0) return false;
  }
  return true;
}

void RemoveSaved(const std::string& directory) {
  for (const char* file : kSavedFiles) (void)::unlink((directory + "/" + file).c_str());
}

Shape ShapeOf(const MachineSpec& spec, const Yard& yard) {
  return {.image = spec.image,
          .memory_bytes = spec.memory_bytes,
          .processors = ProcessorsOf(spec.cpus),
          .network = yard.networks().enforces()};
}

// Of machines that wait for their name.
struct WaitingKind {
  Shape shape;
  std::uint64_t disk_bytes = 0;
  auto operator<=>(const WaitingKind&) const = default;
};
using Waiting = Pool<Slot, WaitingKind>;

struct Parts {
  std::unique_ptr<Yard> yard;
  std::unique_ptr<Templates> templates;
  std::unique_ptr<Waiting> waiting;
};

// One that waits is made only where there is a template by then: it must not wait for one itself.
Result<std::unique_ptr<Slot>> MakeWaiting(Parts& parts, const WaitingKind& kind) {
  Yard& yard = *parts.yard;
  const auto from = parts.templates->Find(kind.shape);
  if (!from) return Fail(errors::kMachinePreparing, "there is no template of it yet");
  MachineSpec spec;
  spec.host_name = "machine";
  spec.image = kind.shape.image;
  spec.cpus = kind.shape.processors;
  spec.memory_bytes = kind.shape.memory_bytes;
  spec.disk_bytes = kind.disk_bytes;
  CAISSON_ASSIGN(std::unique_ptr<Slot> slot, yard.NewSlot(spec.image, spec));
  const auto make = [&]() -> Result<void> {
    CAISSON_TRY(yard.MakeDisk(spec.disk_bytes, slot->disk()));
    CAISSON_TRY(Yard::GiveTo(slot->disk(), *slot));
    CAISSON_TRY(LinkSaved(from->directory(), slot->saved()));
    return yard.StartWaiting(*slot, slot->saved());
  };
  if (auto made = make(); !made) {
    (void)yard.Remove(*slot);
    return Fail(std::move(made).error());
  }
  return slot;
}

class Microvm final : public RecordedMachine {
 public:
  Microvm(Parts& parts, std::unique_ptr<Slot> slot) : parts_(parts), slot_(std::move(slot)) {}

  // A machine with a copy of `disk`, or a new one when that is empty, that goes on from `origin`.
  // On failure nothing is left.
  static Result<std::unique_ptr<LocalMachine>> Launch(Parts& parts, uid_t owner,
                                                      const MachineSpec& spec,
                                                      const std::string& disk,
                                                      const Origin& origin) {
    Yard& yard = *parts.yard;
    CAISSON_ASSIGN(std::unique_ptr<Slot> slot, yard.NewSlot(spec.image, spec));
    slot->record.owner = owner;
    const auto launch = [&]() -> Result<void> {
      CAISSON_TRY(disk.empty() ? yard.MakeDisk(spec.disk_bytes, slot->disk())
                               : CopyDisk(disk, slot->disk()));
      CAISSON_TRY(Yard::GiveTo(slot->disk(), *slot));
      // Of its own, so that what it came from can go.
      CAISSON_TRY(LinkSaved(origin.base, slot->saved()));
      CAISSON_TRY(yard.Start(*slot, {.base = slot->saved(), .has_disk = origin.has_disk}, true));
      slot->record.phase = Phase::kRunning;
      return slot->Write(false);
    };
    if (auto launched = launch(); !launched) {
      (void)yard.Remove(*slot);
      return Fail(std::move(launched).error());
    }
    return std::make_unique<Microvm>(parts, std::move(slot));
  }
  // A machine that waits for its name; null when there is none that lives.
  static std::unique_ptr<LocalMachine> Take(Parts& parts, uid_t owner, const MachineSpec& spec) {
    auto slot =
        parts.waiting->Take({.shape = ShapeOf(spec, *parts.yard), .disk_bytes = spec.disk_bytes});
    if (slot == nullptr) return nullptr;
    slot->record.owner = owner;
    slot->record.spec = spec;
    const auto begin = [&]() -> Result<void> {
      CAISSON_TRY(parts.yard->Begin(*slot));
      slot->record.phase = Phase::kRunning;
      return slot->Write(false);
    };
    if (begin()) return std::make_unique<Microvm>(parts, std::move(slot));
    (void)parts.yard->Remove(*slot);
    return nullptr;
  }
  // One that begins anew, with what is on `disk`.
  static Result<std::unique_ptr<LocalMachine>> Begin(Parts& parts, uid_t owner,
                                                     const MachineSpec& spec,
                                                     const std::string& disk) {
    CAISSON_ASSIGN(const Templates::Held from, parts.templates->Get(ShapeOf(spec, *parts.yard)));
    return Launch(parts, owner, spec, disk, {.base = from.directory(), .has_disk = false});
  }

  Result<void> Pause(Level level) override;
  Result<void> Resume() override;
  Result<std::unique_ptr<LocalMachine>> Fork(uid_t owner, const MachineSpec& child,
                                             Extent most) override;
  Result<void> Keep(const std::string& directory, Extent most) override;
  Result<void> Resize(std::uint64_t disk_bytes) override;
  Result<Stats> ReadStats() override;
  Result<os::UniqueFd> Connect() override { return ConnectToAgent(slot_->directory); }

 private:
  Yard& yard() { return *parts_.yard; }
  SlotBase& base() const override { return *slot_; }
  Networks& networks() override { return yard().networks(); }
  bool Lives() override { return slot_->Lives(); }
  Result<void> TakeAway() override { return yard().Remove(*slot_); }
  Result<Reply> Ask(Operation operation, milliseconds patience, std::uint64_t argument = 0) {
    return AskVmm(slot_->directory, {.operation = operation, .argument = argument}, patience);
  }
  // Whether memory and state in saved() are those of the machine as it is now.
  bool IsSavedWhole() const {
    return slot_->record.phase == Phase::kPausedOnDisk && HasSaved(slot_->saved());
  }
  // Makes the files that it is saved into, which takes a while that it need not stand still for.
  Result<void> PrepareSave();
  // Memory and state of a machine that stands still, into `directory`.
  Result<void> SaveInto(const std::string& directory);
  Result<void> EnsureFrozen();
  std::string frozen() const { return slot_->frozen(); }
  // Whatever was saved of it before it ran is not what it is now.
  Result<void> Halt();
  Result<void> GoOn() {
    (void)::unlink(slot_->unquiet().c_str());
    CAISSON_TRY(Ask(Operation::kGoOn, kGoOnPatience));
    return {};
  }
  Result<void> RequireQuiet() const;
  Result<void> KeepStopped(const std::string& directory, State state, Extent most);
  void ForgetFrozen() {
    std::error_code error;
    fs::remove_all(frozen(), error);
  }
  Kept Description(bool has_memory) {
    return {.boot = yard().boot_id(),
            .accelerator = std::string(NameOf(yard().accelerator())),
            .memory_bytes = slot_->record.spec.memory_bytes,
            .processors = ProcessorsOf(slot_->record.spec.cpus),
            .network = yard().networks().enforces(),
            .has_memory = has_memory};
  }

  Parts& parts_;
  std::unique_ptr<Slot> slot_;
  bool prepared_ = false;
};

// A machine stops whatever its guest does; what its agent did not do is kept for RequireQuiet.
Result<void> Microvm::Halt() {
  CAISSON_ASSIGN(const Reply reply, Ask(Operation::kStop, kStopPatience));
  const auto stopped = [&]() -> Result<void> {
    if (reply.outcome == Outcome::kUnquiet) {
      CAISSON_TRY(images::WriteFile(slot_->unquiet(), WordsOf(reply)));
    }
    std::error_code error;
    fs::remove_all(frozen(), error);
    if (!error) return {};
    return Fail(errors::kMachineState, "remove " + frozen() + ": " + error.message());
  }();
  if (!stopped) (void)GoOn();
  return stopped;
}

// Of a machine that stands still, for copies: commands of theirs must not run before they have been
// renewed, and their disk must be whole.
Result<void> Microvm::RequireQuiet() const {
  const auto why = os::ReadSmallFile(slot_->unquiet());
  if (!why) return {};
  return Fail(errors::kMachineAgentLost,
              "the machine stands still, but its agent has not stopped commands and written the "
              "disk before, so that it cannot be copied (" +
                  *why + "); resume it, and pause it again");
}

Result<void> Microvm::PrepareSave() {
  const std::string memory = slot_->own() + "/memory";
  const std::string base = slot_->saved() + "/memory";
  CAISSON_TRY(Yard::NewFile(slot_->own() + "/state", *slot_, 0));
  CAISSON_TRY(Yard::NewFile(memory, *slot_, 0));
  // One that has booted by itself went on from nothing.
  if (!yard().saves_whole() && ::access(base.c_str(), R_OK) == 0) {
    CAISSON_TRY(CopyContents(base, memory));
  }
  prepared_ = true;
  return {};
}

Result<void> Microvm::SaveInto(const std::string& directory) {
  if (!prepared_) CAISSON_TRY(PrepareSave());
  prepared_ = false;
  CAISSON_TRY(Ask(Operation::kSave, kSavePatience));
  for (const char* file : kSavedFiles) {
    const std::string from = slot_->own() + "/" + file;
    const std::string to = directory + "/" + file;
    if (::rename(from.c_str(), to.c_str()) != 0) return os::SyscallError("move " + to);
    CAISSON_TRY(Yard::TakeBack(to));
  }
  return {};
}

// For copies of a machine that is paused in memory: saved once, however many there are.
Result<void> Microvm::EnsureFrozen() {
  if (HasSaved(frozen())) return {};
  ForgetFrozen();
  if (::mkdir(frozen().c_str(), 0755) != 0) return os::SyscallError("mkdir " + frozen());
  auto saved = SaveInto(frozen());
  if (!saved) ForgetFrozen();
  return saved;
}

Result<void> Microvm::Pause(Level level) {
  if (StateNow() == State::kRunning) {
    if (level == Level::kDisk) CAISSON_TRY(PrepareSave());
    CAISSON_TRY(Halt());
    CAISSON_TRY(SetPhase(Phase::kPausedInMemory, level == Level::kMemory));
    CAISSON_TRY(SyncDisk(slot_->disk()));
  }
  if (level == Level::kMemory) return {};
  CAISSON_TRY(EnsureFrozen());
  RemoveSaved(slot_->saved());
  for (const char* file : kSavedFiles) {
    const std::string to = slot_->saved() + "/" + file;
    if (::rename((frozen() + "/" + file).c_str(), to.c_str()) != 0) {
      return os::SyscallError("move " + to);
    }
    CAISSON_TRY(SyncDisk(to));
  }
  ForgetFrozen();
  CAISSON_TRY(SetPhase(Phase::kPausedOnDisk, true));
  return yard().Stop(*slot_);
}

Result<void> Microvm::Resume() {
  if (StateNow() == State::kPausedInMemory) {
    CAISSON_TRY(SetPhase(Phase::kRunning, false));
    ForgetFrozen();
    return GoOn();
  }
  CAISSON_TRY(slot_->HoldImage(yard().store()));
  ForgetFrozen();
  const bool saved = IsSavedWhole();
  const Phase before = saved ? Phase::kPausedOnDisk : slot_->record.phase;
  CAISSON_TRY(yard().Stop(*slot_));
  Origin origin{.base = slot_->saved(), .has_disk = saved};
  if (!saved) {
    RemoveSaved(slot_->saved());
    // Its disk is what it has; who boots need not wait for another one to do so.
    const auto from = parts_.templates->Find(ShapeOf(slot_->record.spec, yard()));
    if (!from || !LinkSaved(from->directory(), slot_->saved())) origin.base.clear();
  }
  // Once its processors run, memory that was saved does not go with its disk any more.
  CAISSON_TRY(SetPhase(Phase::kRunning, true));
  auto started = yard().Start(*slot_, origin, !saved);
  if (started) {
    (void)::unlink(slot_->unquiet().c_str());
    return {};
  }
  (void)yard().Stop(*slot_);
  (void)SetPhase(before, true);
  return started;
}

Result<std::unique_ptr<LocalMachine>> Microvm::Fork(uid_t owner, const MachineSpec& child,
                                                    Extent most) {
  const MachineSpec& own = slot_->record.spec;
  const bool alive = StateNow() == State::kPausedInMemory;
  if (!alive && !IsSavedWhole()) return Microvm::Begin(parts_, owner, child, slot_->disk());
  CAISSON_TRY(RequireQuiet());
  if (most != Extent::kFull) return Microvm::Begin(parts_, owner, child, slot_->disk());
  if (alive) CAISSON_TRY(EnsureFrozen());
  const std::string from = alive ? frozen() : slot_->saved();
  if (child.memory_bytes != own.memory_bytes ||
      ProcessorsOf(child.cpus) != ProcessorsOf(own.cpus)) {
    return Fail(errors::kMachineInvalid,
                fmt::format("memory_bytes and cpus of a copy that goes on are its parent's: {} "
                            "and {} processors",
                            own.memory_bytes, ProcessorsOf(own.cpus)));
  }
  return Microvm::Launch(parts_, owner, child, slot_->disk(), {.base = from, .has_disk = true});
}

Result<void> Microvm::KeepStopped(const std::string& directory, State state, Extent most) {
  const bool lives = state == State::kRunning || state == State::kPausedInMemory;
  const bool has_memory = most == Extent::kFull && (lives || IsSavedWhole());
  if (lives || IsSavedWhole()) CAISSON_TRY(RequireQuiet());
  if (has_memory && lives) CAISSON_TRY(EnsureFrozen());
  if (has_memory) CAISSON_TRY(LinkSaved(lives ? frozen() : slot_->saved(), directory));
  CAISSON_TRY(CopyDisk(slot_->disk(), directory + "/disk.img"));
  return WriteKept(directory, Description(has_memory));
}

Result<void> Microvm::Keep(const std::string& directory, Extent most) {
  const State state = StateNow();
  if (state == State::kRunning) {
    if (most == Extent::kFull) CAISSON_TRY(PrepareSave());
    CAISSON_TRY(Halt());
  }
  auto kept = KeepStopped(directory, state, most);
  if (state == State::kRunning) {
    ForgetFrozen();
    CAISSON_TRY(GoOn());
  }
  return kept;
}

Result<void> Microvm::Resize(std::uint64_t disk_bytes) {
  if (slot_->Lives()) {
    const json::Value* most = slot_->record.more.Find(kMaxFileMember);
    if (most != nullptr && most->is_int() &&
        disk_bytes > static_cast<std::uint64_t>(most->as_int())) {
      return Fail(
          errors::kMachineInvalid,
          fmt::format("disk_bytes: this disk can grow to {} while it lives; pause it to disk "
                      "for more",
                      most->as_int()));
    }
    CAISSON_TRY(Ask(Operation::kGrow, kStopPatience, disk_bytes));
    ForgetFrozen();
  }
  slot_->record.spec.disk_bytes = disk_bytes;
  return slot_->Write(true);
}

Result<Stats> Microvm::ReadStats() {
  struct stat disk{};
  (void)::stat(slot_->disk().c_str(), &disk);
  CAISSON_ASSIGN(Stats stats, StatsWith(static_cast<std::uint64_t>(disk.st_blocks) * 512));
  stats.memory_bytes = std::min(stats.memory_bytes, stats.memory_limit_bytes);
  // It joins no group of version 2, which would stop every fork of the host for a moment.
  if (slot_->Lives()) stats.cpu_nanoseconds = ProcessorNanoseconds(slot_->record.agent);
  return stats;
}

class MicrovmDriver final : public LocalDriver {
 public:
  MicrovmDriver(std::unique_ptr<Yard> yard, std::string name, std::string isolation)
      : name_(std::move(name)), isolation_(std::move(isolation)) {
    const MicrovmOptions& options = yard->options();
    parts_.templates = std::make_unique<Templates>(*yard);
    parts_.waiting = std::make_unique<Waiting>(
        options.waiting, 1, [this](const WaitingKind& kind) { return MakeWaiting(parts_, kind); },
        [this](std::unique_ptr<Slot> slot) { (void)parts_.yard->Remove(*slot); },
        [tell = options.not_prepared](const Status& failure) {
          if (tell && failure.code != errors::kMachinePreparing) tell(failure);
        });
    parts_.yard = std::move(yard);
  }

  Capabilities capabilities() const override {
    const bool emulated = yard().accelerator() == Accelerator::kTcg;
    return {.driver = name_,
            .isolation = isolation_,
            .isolation_class = "hardware-virtualized",
            .emulated = emulated,
            .pause = Level::kDisk,
            .disk_pause_keeps_processes = true,
            .snapshot = Extent::kFull,
            .fork = Extent::kFull,
            .resize_disk = true,
            .network = yard().networks().enforces(),
            .host_name_rules = yard().networks().enforces_names(),
            .shared_networks = yard().networks().enforces()};
  }
  const images::Store& store() const override { return yard().store(); }
  std::string SnapshotsDirectory() const override { return yard().state().snapshots(); }

  Result<std::vector<std::unique_ptr<LocalMachine>>> Adopt() override {
    CAISSON_ASSIGN(std::vector<std::unique_ptr<Slot>> slots, yard().Adopt());
    parts_.templates->Begin();
    std::vector<std::unique_ptr<LocalMachine>> machines;
    for (std::unique_ptr<Slot>& slot : slots) {
      machines.push_back(std::make_unique<Microvm>(parts_, std::move(slot)));
    }
    return machines;
  }

  Result<std::unique_ptr<LocalMachine>> Make(uid_t owner, const MachineSpec& spec) override {
    if (auto taken = Microvm::Take(parts_, owner, spec)) return taken;
    return Microvm::Begin(parts_, owner, spec, "");
  }

  Result<std::unique_ptr<LocalMachine>> Restore(const std::string& directory, const Snapshot&,
                                                uid_t owner, const MachineSpec& spec) override {
    CAISSON_ASSIGN(const Kept kept, ReadKept(directory));
    const std::string disk = directory + "/disk.img";
    if (!kept.has_memory) return Microvm::Begin(parts_, owner, spec, disk);
    if (kept.boot != yard().boot_id() || kept.accelerator != NameOf(yard().accelerator()) ||
        kept.network != yard().networks().enforces()) {
      return Fail(errors::kMachineUnsupported,
                  "the snapshot is of a machine with another kernel, processor or network "
                  "than this host gives now; its files are in disk.img of " +
                      directory);
    }
    if (!HasSaved(directory)) {
      return Fail(errors::kMachineDamaged, "the snapshot's memory or state is missing");
    }
    if (kept.memory_bytes != spec.memory_bytes || kept.processors != ProcessorsOf(spec.cpus)) {
      return Fail(errors::kMachineInvalid,
                  fmt::format("memory_bytes and cpus of what goes on are the snapshot's: {} and {} "
                              "processors",
                              kept.memory_bytes, kept.processors));
    }
    return Microvm::Launch(parts_, owner, spec, disk, {.base = directory, .has_disk = true});
  }

 private:
  Yard& yard() const { return *parts_.yard; }
  const std::string name_;
  const std::string isolation_;
  Parts parts_;
};

}  // namespace

std::unique_ptr<LocalDriver> DriverOf(std::unique_ptr<Yard> yard, std::string name,
                                      std::string isolation) {
  return std::make_unique<MicrovmDriver>(std::move(yard), std::move(name), std::move(isolation));
}

Result<std::unique_ptr<LocalDriver>> OpenMicrovm(const MicrovmOptions& options, SharedParts parts) {
  CAISSON_ASSIGN(std::unique_ptr<Yard> yard, Yard::Open(options, std::move(parts)));
  const bool emulated = yard->accelerator() == Accelerator::kTcg;
  return DriverOf(std::move(yard), "microvm",
                  emulated ? "a kernel of its own below QEMU, whose processor is emulated"
                           : "a kernel of its own below QEMU and KVM");
}

}  // namespace caisson::machine::microvm
