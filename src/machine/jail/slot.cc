// SPDX-License-Identifier: Apache-2.0
#include "machine/jail/slot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <utility>

#include "errors/machine.h"
#include "machine/agent_socket.h"
#include "machine/disk.h"
#include "machine/identity.h"
#include "machine/loop_devices.h"
#include "machine/syscalls.h"
#include "os/landlock.h"
#include "os/syscall_error.h"

namespace caisson::machine::jail {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kPatience{20'000};

// The agent on a mount of its own that cannot be written, whatever happens to the mount that it is
// found on: a guest reaches it as /proc/1/exe.
Result<os::UniqueFd> OpenAgent(const std::string& path) {
  os::UniqueFd agent(::open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  if (!agent.valid()) {
    return Fail(errors::kMachineUnavailable,
                "the agent " + path + " cannot be opened: " + os::ErrnoText(errno));
  }
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (::mount_setattr(agent.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0) {
    return os::SyscallError("make the agent read-only");
  }
  return agent;
}

}  // namespace

bool Slot::Lives() {
  if (!agent.valid()) return false;
  if (!HasEnded(agent.get())) return true;
  siginfo_t info{};
  ::waitid(P_PIDFD, static_cast<id_t>(agent.get()), &info, WEXITED | WNOHANG);
  agent.Reset();
  return false;
}

Result<std::unique_ptr<Workshop>> Workshop::Open(const WorkshopOptions& options,
                                                 SharedParts parts) {
  CAISSON_ASSIGN(images::Store store, images::Store::Open(options.images));
  CAISSON_ASSIGN(StateDirectory state, StateDirectory::Open(options.state));
  std::unique_ptr<Workshop> workshop(
      new Workshop(std::move(parts), std::move(store), std::move(state)));
  CAISSON_TRY(workshop->Furnish(options.agent));
  return workshop;
}

Result<void> Workshop::Furnish(const std::string& agent) {
  CAISSON_ASSIGN(agent_, OpenAgent(agent));
  CAISSON_ASSIGN(filter_, os::BuildFilter(MachineSyscalls(), EPERM));
  if (os::LandlockAbi() >= 6) {
    CAISSON_ASSIGN(landlock_, os::MakeScopeRuleset());
  }
  CAISSON_ASSIGN(roots_, RootBuilder::Make(state_.scratch()));
  CAISSON_TRY(Groups::Plan("probe"));  // says now what every machine would fail of
  return {};
}

Result<void> Workshop::MakeDiskOf(const Slot& slot, const std::string& source, bool grow) const {
  if (source.empty()) {
    return MakeDisk(state_.templates(), slot.record.spec.disk_bytes, slot.disk());
  }
  CAISSON_TRY(CopyDisk(source, slot.disk()));
  if (!grow) return {};
  CAISSON_TRY(GrowDisk(slot.disk(), slot.record.spec.disk_bytes));
  return AwaitReleased(slot.disk(), kPatience);
}

Result<std::unique_ptr<Slot>> Workshop::Make(const std::string& image, std::uint64_t disk_bytes,
                                             const std::string& source, bool grow) {
  auto slot = std::make_unique<Slot>();
  auto held = store_.Hold(image);
  if (!held) return Fail(errors::kMachineNoImage, held.error().message);
  slot->image = *std::move(held);
  Record& record = slot->record;
  CAISSON_ASSIGN(record.index, parts_.ids->Take());
  record.slot = state_.NewSlot(record.index);
  record.spec.image = slot->image->image.id;
  record.spec.disk_bytes = disk_bytes;
  slot->directory = state_.machines() + "/" + record.slot;
  const auto make = [&]() -> Result<void> {
    CAISSON_ASSIGN(record.groups, Groups::Plan(record.slot));
    CAISSON_TRY(state_.MakeMachine(record.slot));
    CAISSON_TRY(slot->Write(false));
    CAISSON_TRY(MakeDiskOf(*slot, source, grow));
    return Prepare(*slot);
  };
  if (auto made = make(); !made) {
    (void)Remove(*slot);  // what stays is removed with the next start
    return Fail(std::move(made).error());
  }
  return slot;
}

Result<void> Workshop::Prepare(Slot& slot) {
  Record& record = slot.record;
  CAISSON_ASSIGN(const NetworkPlace network, parts_.networks->Make());
  record.network = network.index;
  record.ip = network.address;
  CAISSON_ASSIGN(record.groups, Groups::Plan(record.slot));
  CAISSON_TRY(slot.Write(false));
  CAISSON_TRY(record.groups.Make());
  CAISSON_ASSIGN(const os::UniqueFd listener, ListenForAgent(slot.directory));
  CAISSON_ASSIGN(const os::UniqueFd unified, record.groups.OpenUnified());
  CAISSON_ASSIGN(const auto agent_tasks, record.groups.OpenAgentTasks());
  CAISSON_ASSIGN(const auto command_tasks, record.groups.OpenCommandTasks());
  boot::BootOptions options{
      .program = agent_.get(),
      .arguments = {"caisson-agent", "--listen-fd", std::to_string(boot::kListenFd),
                    "--cgroup-procs"},
      .environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
      .listener = listener.get(),
      .command_tasks = command_tasks,
      .agent_tasks = agent_tasks,
      .unified_group = unified.get(),
      .network = network.path,
      .first_host_id = IdRanges::FirstIdOf(record.index),
      .landlock = landlock_.get(),
      .filter = filter_};
  std::string tasks;
  for (std::size_t i = 0; i < command_tasks.size(); ++i) {
    tasks += (i == 0 ? "" : ",") + std::to_string(boot::kListenFd + 1 + static_cast<int>(i));
  }
  options.arguments.push_back(std::move(tasks));
  const auto build_root = [&](int user_namespace) -> Result<os::UniqueFd> {
    CAISSON_ASSIGN(const os::UniqueFd disk, MountDisk(slot.disk(), user_namespace));
    return roots_->Build(record.slot, slot.image->image.root, disk.get(), user_namespace,
                         options.first_host_id);
  };
  CAISSON_ASSIGN(slot.prepared, boot::Prepare(options, build_root));
  return {};
}

Result<void> Workshop::Start(Slot& slot, bool first_time) {
  Record& record = slot.record;
  const MachineSpec& spec = record.spec;
  CAISSON_TRY(record.groups.Limit(
      {.cpus = spec.cpus, .memory_bytes = spec.memory_bytes, .pids = spec.pids}));
  CAISSON_TRY(parts_.networks->Apply(record.network, spec.network, spec.sent_cap));
  CAISSON_TRY(parts_.networks->Share(record.network, record.owner, spec.shared_networks));
  const boot::Identity identity{
      .host_name = spec.host_name,
      .files = IdentityFiles(spec, record.ip, parts_.networks->name_servers(), first_time)};
  boot::Prepared prepared = *std::move(slot.prepared);
  slot.prepared.reset();
  CAISSON_ASSIGN(os::ChildProcess agent, boot::Start(std::move(prepared), identity));
  record.agent = agent.pid();
  record.agent_start = StartOf(agent.pid());
  record.boot = state_.boot();
  record.phase = Phase::kRunning;
  CAISSON_TRY(slot.Write(false));
  slot.agent = agent.Release();
  return {};
}

Result<void> Workshop::Stop(Slot& slot) {
  slot.prepared.reset();
  CAISSON_TRY(slot.record.groups.Remove(kPatience));
  (void)slot.Lives();  // reaps
  slot.agent.Reset();
  CAISSON_TRY(AwaitReleased(slot.disk(), kPatience));
  if (slot.record.network != 0) CAISSON_TRY(parts_.networks->Remove(slot.record.network));
  slot.record.network = 0;
  slot.record.ip.clear();
  slot.record.agent = 0;
  return {};
}

Result<void> Workshop::Remove(Slot& slot) {
  slot.prepared.reset();
  CAISSON_TRY(slot.record.groups.Remove(kPatience));
  (void)slot.Lives();
  slot.agent.Reset();
  if (slot.record.network != 0) CAISSON_TRY(parts_.networks->Remove(slot.record.network));
  slot.record.network = 0;
  // The disk goes with its last mount, which the kernel may take away a little later.
  std::error_code error;
  fs::remove_all(slot.directory, error);
  if (error)
    return Fail(errors::kMachineState, "remove " + slot.directory + ": " + error.message());
  slot.image.reset();
  parts_.ids->Return(slot.record.index);
  return {};
}

// --- adoption ---

Result<std::vector<std::unique_ptr<Slot>>> Workshop::Adopt() {
  CAISSON_ASSIGN(const std::vector<std::string> names, state_.Slots());
  std::vector<std::unique_ptr<Slot>> adopted;
  for (const std::string& name : names) {
    CAISSON_ASSIGN(std::unique_ptr<Slot> slot, AdoptOne(name));
    if (slot != nullptr) adopted.push_back(std::move(slot));
  }
  DetachStrays(state_.path());
  return adopted;
}

// Null when it was nothing that stays.
Result<std::unique_ptr<Slot>> Workshop::AdoptOne(const std::string& name) {
  auto slot = std::make_unique<Slot>();
  switch (FindSlot(state_, name, *parts_.ids, store_, *slot)) {
    case Found::kUnreadable:
      CAISSON_TRY(SetAside(name));
      return nullptr;
    case Found::kUnfinished:
      CAISSON_TRY(Remove(*slot));
      return nullptr;
    case Found::kKept:
      break;
  }
  CAISSON_TRY(AdoptRunning(*slot));
  return slot;
}

Result<void> Workshop::AdoptRunning(Slot& slot) {
  Record& record = slot.record;
  ThawDisk(slot.disk());
  slot.agent = ProcessOf(record, state_.boot());
  if (record.phase == Phase::kPausedOnDisk || !slot.Lives()) return Stop(slot);
  // A network that cannot be had stays closed; the machine's files are its owner's all the same.
  if (!parts_.networks->Adopt(record.network, record.spec.network, record.spec.sent_cap) ||
      !parts_.networks->Share(record.network, record.owner, record.spec.shared_networks)) {
    return Stop(slot);
  }
  return record.phase == Phase::kPausedInMemory ? record.groups.Freeze() : record.groups.Thaw();
}

// A record that cannot be read, as after a power failure: nothing runs of it afterwards, and its
// disk is kept for the operator.
Result<void> Workshop::SetAside(const std::string& name) {
  CAISSON_ASSIGN(Groups groups, Groups::Plan(name));
  CAISSON_TRY(groups.Remove(kPatience));
  return state_.SetAside(name, "disk.img");
}

}  // namespace caisson::machine::jail
