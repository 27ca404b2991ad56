// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/workshop.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "errors/machine.h"
#include "errors/oci.h"
#include "machine/agent_socket.h"
#include "machine/disk.h"
#include "machine/identity.h"
#include "machine/loop_devices.h"
#include "machine/oci/files.h"
#include "machine/oci/launch.h"
#include "machine/oci/left_groups.h"
#include "machine/oci/machine_config.h"
#include "os/network_namespace.h"
#include "os/run_program.h"
#include "os/syscall_error.h"
#include "os/user_namespace.h"

namespace caisson::machine::oci {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kPatience{20'000};

// What gVisor's kernel needs beside the guest's memory, and for each process of the guest. Where
// the guest has used up all, the host's kernel ends one of its processes; gVisor's own must not be
// the largest.
constexpr std::uint64_t kRunscMemory = 96ull << 20;
constexpr std::uint64_t kRunscMemoryOfProcess = 4ull << 20;
// A process of the guest is two of the host, a thread is one; gVisor has some of its own.
constexpr std::uint64_t kRunscPids = 256;
constexpr std::uint64_t kRunscPidsOfProcess = 4;
constexpr double kRunscCpus = 0.5;

std::uint64_t RunscProcesses(const MachineSpec& spec) {
  return std::min(spec.pids, std::max(kMinPids, spec.memory_bytes / kRunscMemoryOfProcess));
}

json::Value More(const Runtime& runtime) {
  json::Array parents;
  for (std::string& path : OwnGroups(os::ReadSmallFile("/proc/self/cgroup").value_or(""))) {
    parents.emplace_back(std::move(path));
  }
  return json::Object{{"runtime", NameOf(runtime.kind)}, {"groups", std::move(parents)}};
}

// Of what a runtime makes by itself; ours must be gone. An earlier helper may have had other groups
// than this one has.
Result<void> RemoveGroupsOfRuntime(const std::string& slot, const json::Value& more) {
  std::vector<std::string> parents = OwnGroups(os::ReadSmallFile("/proc/self/cgroup").value_or(""));
  const json::Value* listed = more.is_object() ? more.Find("groups") : nullptr;
  if (listed != nullptr && listed->is_array()) {
    for (const json::Value& path : listed->as_array()) {
      if (path.is_string()) parents.push_back(path.as_string());
    }
  }
  CAISSON_ASSIGN(const std::string mountinfo, os::ReadSmallFile("/proc/self/mountinfo"));
  return RemoveLeftGroups(slot, parents, mountinfo);
}

// The network is the host's own, so that a machine's capabilities do not reach into it; what they
// would give is given to everybody inside.
Result<void> OpenPrivilegedPorts(const std::string& network) {
  CAISSON_ASSIGN(const os::UniqueFd space, os::OpenFile(network, O_RDONLY));
  return os::InNetworkNamespace(space.get(), []() -> Result<void> {
    CAISSON_TRY(os::WriteSmallFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"));
    return os::WriteSmallFile("/proc/sys/net/ipv4/ping_group_range", "0 2147483647");
  });
}

Result<void> SetHostName(pid_t pid, const std::string& name) {
  CAISSON_ASSIGN(const os::UniqueFd space,
                 os::OpenFile("/proc/" + std::to_string(pid) + "/ns/uts", O_RDONLY));
  Result<void> named;
  std::thread([&] {  // which ends there
    if (::setns(space.get(), CLONE_NEWUTS) != 0 || ::sethostname(name.data(), name.size()) != 0) {
      named = os::SyscallError("name a machine");
    }
  })
      .join();
  return named;
}

// The directory for the agent's socket; the guest's root owns it.
Result<void> MakeSocketDirectory(int disk) {
  if (::mkdirat(disk, kSocketDirectory, 0700) == 0 || errno == EEXIST) return {};
  return os::SyscallError("make the directory of the agent's socket");
}

// The helper's own names of descriptors are nobody else's.
std::string ForOthers(const std::string& path) {
  constexpr std::string_view kSelf = "/proc/self/";
  if (!path.starts_with(kSelf)) return path;
  return "/proc/" + std::to_string(::getpid()) + "/" + path.substr(kSelf.size());
}

// `memory`: of a machine that goes on; empty: it begins.
std::vector<std::string> CommandLine(const Runtime& runtime, const Slot& slot, bool network,
                                     const std::string& memory, std::size_t passed) {
  if (runtime.kind == RuntimeKind::kRunsc) {
    std::vector<std::string> words = {
        runtime.program, "--root=" + slot.runtime(),
        network ? "--network=sandbox" : "--network=none", "--ignore-cgroups",
        // What is written goes to the machine's disk, not to memory.
        "--overlay2=none", "--host-uds=create", "--oci-seccomp", "--net-raw=false",
        memory.empty() ? "run" : "restore", "--detach", "--bundle=" + slot.bundle(),
        "--pid-file=" + slot.bundle() + "/pid"};
    if (!memory.empty()) words.push_back("--image-path=" + memory);
    words.push_back(slot.record.slot);
    return words;
  }
  return {runtime.program,
          "--root",
          slot.runtime(),
          "run",
          "--detach",
          "--bundle",
          slot.bundle(),
          "--pid-file",
          slot.bundle() + "/pid",
          "--preserve-fds",
          std::to_string(passed),
          slot.record.slot};
}

}  // namespace

RuntimeKind Slot::kind() const {
  const json::Value* name = record.more.is_object() ? record.more.Find("runtime") : nullptr;
  const auto kind =
      name != nullptr && name->is_string() ? FindRuntimeKind(name->as_string()) : std::nullopt;
  return kind.value_or(RuntimeKind::kRunc);
}

bool Slot::Lives() {
  if (!agent.valid()) return false;
  if (!HasEnded(agent.get())) return true;
  siginfo_t info{};
  ::waitid(P_PIDFD, static_cast<id_t>(agent.get()), &info, WEXITED | WNOHANG);
  agent.Reset();
  return false;
}

Result<std::unique_ptr<Workshop>> Workshop::Open(const WorkshopOptions& options, Runtime runtime,
                                                 SharedParts parts) {
  CAISSON_ASSIGN(images::Store store, images::Store::Open(options.images));
  CAISSON_ASSIGN(StateDirectory state, StateDirectory::Open(options.state));
  std::unique_ptr<Workshop> workshop(
      new Workshop(std::move(parts), std::move(store), std::move(state), std::move(runtime)));
  std::error_code error;
  workshop->agent_ = fs::canonical(options.agent, error);
  if (error) {
    return Fail(errors::kMachineUnavailable,
                "the agent " + options.agent + " cannot be found: " + error.message());
  }
  CAISSON_ASSIGN(workshop->place_, FindPlace({workshop->agent_, workshop->state_.path(),
                                              workshop->runtime_.program}));
  if (workshop->IsEngine()) CAISSON_TRY(workshop->OpenEngine(options.init));
  CAISSON_ASSIGN(workshop->roots_, RootBuilder::Make(workshop->state_.scratch()));
  CAISSON_TRY(Groups::Plan("probe"));  // says now what every machine would fail of
  return workshop;
}

Result<void> Workshop::OpenEngine(const std::string& init) {
  CAISSON_ASSIGN(Engine engine, Engine::Open(runtime_, init, state_.path(), state_.path()));
  CAISSON_ASSIGN(engine_, EngineLauncher::Open(std::move(engine), agent_));
  return {};
}

// --- making ---

Result<void> Workshop::MakeDiskOf(const Slot& slot, const std::string& source, bool grow) const {
  const std::uint64_t bytes = slot.record.spec.disk_bytes;
  if (source.empty()) return MakeDisk(state_.templates(), bytes, slot.disk());
  CAISSON_TRY(CopyDisk(source, slot.disk()));
  if (!grow) return {};
  CAISSON_TRY(GrowDisk(slot.disk(), bytes));
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
    return MakeDiskOf(*slot, source, grow);
  };
  if (auto made = make(); !made) {
    (void)Remove(*slot);  // what stays is removed with the next start
    return Fail(std::move(made).error());
  }
  return slot;
}

// Limits and rules of the machine that the record names.
Result<void> Workshop::Enforce(const Slot& slot) const {
  const Record& record = slot.record;
  const MachineSpec& spec = record.spec;
  GroupLimits limits{.cpus = spec.cpus, .memory_bytes = spec.memory_bytes, .pids = spec.pids};
  if (IsRunsc()) {
    limits.cpus += kRunscCpus;
    limits.memory_bytes += kRunscMemory;
    limits.pids = kRunscPids + RunscProcesses(spec) * kRunscPidsOfProcess;
  }
  Groups groups = record.groups;
  CAISSON_TRY(groups.Limit(limits));
  CAISSON_TRY(parts_.networks->Apply(record.network, spec.network, spec.sent_cap));
  return parts_.networks->Share(record.network, record.owner, spec.shared_networks);
}

RootFiles Workshop::FilesOf(const Slot& slot, bool first_time) const {
  if (!slot.is_named()) return {};
  return IdentityFiles(slot.record.spec, slot.record.ip, parts_.networks->name_servers(),
                       first_time);
}

// Of a container in which nothing but our agent has run.
Result<void> Workshop::Name(const Slot& slot) const {
  const Record& record = slot.record;
  CAISSON_TRY(SetHostName(record.agent, record.spec.host_name));
  CAISSON_ASSIGN(
      const os::UniqueFd root,
      os::OpenFile("/proc/" + std::to_string(record.agent) + "/root", O_PATH | O_DIRECTORY));
  return WriteInRoot(root.get(), IdRanges::FirstIdOf(record.index), FilesOf(slot, true));
}

Result<pid_t> Workshop::LaunchInEngine(Slot& slot, bool first_time, const std::string& network) {
  const Record& record = slot.record;
  const std::uint32_t first_id = IdRanges::FirstIdOf(record.index);
  CAISSON_TRY(MakeDirectory(slot.bundle()));
  CAISSON_TRY(OpenPrivilegedPorts(network));
  CAISSON_ASSIGN(const os::UniqueFd listener, ListenForAgent(slot.directory));
  const auto build_root = [&](int user_namespace) -> Result<os::UniqueFd> {
    CAISSON_ASSIGN(const os::UniqueFd disk, MountDisk(slot.disk(), user_namespace));
    return roots_->Build(record.slot, slot.image->image.root, disk.get(), user_namespace, first_id);
  };
  return engine_->Launch({.name = record.slot,
                          .directory = slot.bundle(),
                          .groups = &record.groups,
                          .listener = listener.get(),
                          .network = network,
                          .first_host_id = first_id},
                         build_root,
                         {.host_name = slot.is_named() ? record.spec.host_name : "machine",
                          .files = FilesOf(slot, first_time)});
}

Result<pid_t> Workshop::Launch(Slot& slot, bool first_time, const std::string& network,
                               const std::string& memory) {
  if (IsEngine()) return LaunchInEngine(slot, first_time, network);
  const Record& record = slot.record;
  const std::uint32_t first_id = IdRanges::FirstIdOf(record.index);
  CAISSON_ASSIGN(const os::UniqueFd ids, os::MakeIdMap(first_id, kIdsPerMachine));
  CAISSON_ASSIGN(const os::UniqueFd disk, MountDisk(slot.disk(), ids.get()));
  CAISSON_TRY(MakeDirectory(slot.bundle()));
  CAISSON_TRY(MakeDirectory(slot.runtime()));
  CAISSON_ASSIGN(const os::UniqueFd agent, OpenAgent(agent_));
  os::UniqueFd second;  // for the socket of the agent
  if (IsRunsc()) {
    CAISSON_ASSIGN(const os::UniqueFd plain, MountDisk(slot.disk()));
    CAISSON_TRY(MakeSocketDirectory(plain.get()));
    CAISSON_ASSIGN(second, MountDisk(slot.disk(), ids.get()));
  }
  CAISSON_ASSIGN(const os::UniqueFd root, roots_->Build(record.slot, slot.image->image.root,
                                                        disk.get(), ids.get(), first_id));
  // What gVisor has open must be as it was: a copy's own agent writes them (Identify).
  if (memory.empty()) CAISSON_TRY(WriteInRoot(root.get(), first_id, FilesOf(slot, first_time)));
  const bool enforced = parts_.networks->enforces();
  MachineBundle bundle{.kind = runtime_.kind,
                       .root = place_ + "/root",
                       .agent = place_ + "/agent",
                       .host_name = slot.is_named() ? record.spec.host_name : "machine",
                       .first_host_id = first_id,
                       .network = enforced || !IsRunsc() ? ForOthers(network) : "",
                       .socket_directory = place_ + "/disk/" + kSocketDirectory,
                       .processes = RunscProcesses(record.spec)};
  oci::Launch launch{.place = place_,
                     .attachments = {{root.get(), bundle.root},
                                     {.mount = agent.get(), .path = bundle.agent, .is_file = true}},
                     .messages = slot.bundle() + "/messages"};
  os::UniqueFd listener;
  CAISSON_ASSIGN(const os::UniqueFd unified, record.groups.OpenUnified());
  CAISSON_ASSIGN(const auto agent_tasks, record.groups.OpenAgentTasks());
  CAISSON_ASSIGN(const auto command_tasks, record.groups.OpenCommandTasks());
  launch.group = unified.get();
  launch.tasks = agent_tasks;
  if (IsRunsc()) {
    launch.attachments.push_back({second.get(), place_ + "/disk"});
    launch.further = command_tasks;
    if (enforced) launch.network = network;
  } else {
    CAISSON_TRY(OpenPrivilegedPorts(network));
    bundle.cgroup = record.slot;  // below those that it is started in
    CAISSON_ASSIGN(listener, ListenForAgent(slot.directory));
    launch.descriptors.push_back(listener.get());
    for (const os::UniqueFd& task : command_tasks) launch.descriptors.push_back(task.get());
    bundle.command_tasks = static_cast<int>(command_tasks.size());
  }
  launch.arguments = CommandLine(runtime_, slot, enforced, memory, launch.descriptors.size());
  CAISSON_TRY(WriteConfig(slot.bundle() + "/config.json", MachineConfig(bundle)));
  CAISSON_TRY(Run(launch));
  CAISSON_ASSIGN(const std::string text, os::ReadSmallFile(slot.bundle() + "/pid"));
  pid_t pid = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (parsed.ec == std::errc() && pid > 1) return pid;
  return Fail(errors::kOciFailed, runtime_.program + " names no process");
}

// What the runtime has left running.
Result<void> Workshop::HoldProcess(Slot& slot, pid_t pid) const {
  Record& record = slot.record;
  record.agent = pid;
  record.agent_start = StartOf(pid);
  record.boot = state_.boot();
  slot.agent = ProcessOf(record, state_.boot());
  if (!slot.Lives()) return Fail(errors::kOciFailed, "the machine ended as it was started");
  // Nothing runs outside of its limits.
  if (IsRunsc() || record.groups.HaveAgent(pid)) return {};
  return Fail(errors::kOciFailed, runtime_.program + " has not put the machine into its cgroups");
}

Result<void> Workshop::AwaitAgent(const Slot& slot) const {
  if (!IsRunsc()) return {};  // it inherits a socket that listens
  const auto deadline = Clock::now() + kPatience;
  for (;;) {
    auto connection = Connect(slot);
    if (connection) return {};
    if (HasEnded(slot.agent.get()) || Clock::now() > deadline) {
      return Fail(errors::kMachineAgentLost,
                  "the machine's agent does not listen: " + connection.error().message + "; " +
                      os::ReadSmallFile(slot.bundle() + "/messages").value_or("").substr(0, 500));
    }
    std::this_thread::sleep_for(milliseconds(2));
  }
}

Result<void> Workshop::Boot(Slot& slot, bool first_time, const std::string& memory) {
  Record& record = slot.record;
  const auto boot = [&]() -> Result<void> {
    CAISSON_ASSIGN(const NetworkPlace network, parts_.networks->Make());
    record.network = network.index;
    record.ip = network.address;
    CAISSON_ASSIGN(record.groups, Groups::Plan(record.slot));
    record.more = More(runtime_);
    CAISSON_TRY(slot.Write(false));
    CAISSON_TRY(record.groups.Make());
    if (slot.is_named()) CAISSON_TRY(Enforce(slot));
    CAISSON_ASSIGN(const pid_t pid, Launch(slot, first_time, network.path, memory));
    CAISSON_TRY(HoldProcess(slot, pid));
    if (memory.empty()) return AwaitAgent(slot);
    CAISSON_TRY(WakeAgent(slot));
    return Identify(slot);
  };
  auto booted = boot();
  if (!booted) (void)Stop(slot);
  return booted;
}

Result<void> Workshop::Start(Slot& slot, bool first_time, const std::string& memory) {
  const auto start = [&]() -> Result<void> {
    if (slot.agent.valid()) {  // it is ready
      CAISSON_TRY(Enforce(slot));
      CAISSON_TRY(Name(slot));
    } else {
      CAISSON_TRY(Boot(slot, first_time, memory));
    }
    slot.record.phase = Phase::kRunning;
    return slot.Write(false);
  };
  auto started = start();
  if (!started) (void)Stop(slot);
  return started;
}

// --- ending ---

Result<void> Workshop::TakeBack(Slot& slot) {
  CAISSON_TRY(slot.record.groups.Remove(kPatience));
  CAISSON_TRY(RemoveGroupsOfRuntime(slot.record.slot, slot.record.more));
  (void)slot.Lives();  // reaps
  slot.agent.Reset();
  CAISSON_TRY(RemoveContainer(slot));
  if (slot.record.network != 0) CAISSON_TRY(parts_.networks->Remove(slot.record.network));
  slot.record.network = 0;
  slot.record.ip.clear();
  slot.record.agent = 0;
  return {};
}

// What an engine still has of a machine of which nothing runs. It does so by itself, too: where its
// service is down, it does when it comes back.
Result<void> Workshop::RemoveContainer(const Slot& slot) const {
  const RuntimeKind kind = slot.kind();
  if (TakesBundles(kind)) return {};
  Runtime runtime = runtime_;
  if (runtime.kind != kind) {
    runtime = {.kind = kind, .program = os::FindProgram(std::string(NameOf(kind))), .version = {}};
    if (runtime.program.empty()) return {};
  }
  auto removed = Engine(std::move(runtime), state_.path()).Remove(slot.record.slot);
  if (!removed && removed.error().code == errors::kOciEngineSilent) return {};
  return removed;
}

Result<void> Workshop::Stop(Slot& slot) {
  CAISSON_TRY(TakeBack(slot));
  CAISSON_TRY(AwaitReleased(slot.disk(), kPatience));
  CAISSON_TRY(RemoveAll(slot.memory()));
  CAISSON_TRY(RemoveAll(slot.runtime()));
  return RemoveAll(slot.bundle());
}

Result<void> Workshop::Remove(Slot& slot) {
  CAISSON_TRY(TakeBack(slot));
  // The disk goes with its last mount, which the kernel may take away a little later.
  CAISSON_TRY(RemoveAll(slot.directory));
  slot.image.reset();
  parts_.ids->Return(slot.record.index);
  return {};
}

Result<os::UniqueFd> Workshop::Connect(const Slot& slot) const {
  if (slot.kind() != RuntimeKind::kRunsc) return ConnectToAgent(slot.directory);
  // The guest may put there what it likes: links are not followed, and nothing but the disk is
  // reached.
  CAISSON_ASSIGN(const os::UniqueFd disk, MountDisk(slot.disk()));
  return ConnectToAgentIn(disk.get(), std::string(kSocketDirectory) + "/" + kSocketName);
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
  if (IsEngine()) CAISSON_TRY(SweepContainers(names));
  return adopted;
}

// Containers that say they are of this state, of which there is no machine.
Result<void> Workshop::SweepContainers(const std::vector<std::string>& known) const {
  CAISSON_ASSIGN(const std::vector<std::string> containers, engine_->engine().List());
  for (const std::string& name : containers) {
    if (std::ranges::find(known, name) == known.end()) CAISSON_TRY(engine_->engine().Remove(name));
  }
  return {};
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
  return record.phase == Phase::kPausedInMemory ? record.groups.Freeze() : GoOn(slot);
}

// A record that cannot be read, as after a power failure: nothing runs of it afterwards, and its
// disk is kept for the operator.
Result<void> Workshop::SetAside(const std::string& name) {
  CAISSON_ASSIGN(Groups groups, Groups::Plan(name));
  CAISSON_TRY(groups.Remove(kPatience));
  CAISSON_TRY(RemoveGroupsOfRuntime(name, {}));
  return state_.SetAside(name, "disk.img");
}

}  // namespace caisson::machine::oci
