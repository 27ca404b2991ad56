// SPDX-License-Identifier: Apache-2.0
#include "machine/jail/slot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <sstream>
#include <utility>

#include "errors/machine.h"
#include "machine/jail/disk.h"
#include "machine/jail/syscalls.h"
#include "os/landlock.h"
#include "os/syscall_error.h"

namespace caisson::machine::jail {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kPatience{20'000};
constexpr const char* kSocketName = "agent.sock";
constexpr int kBacklog = 128;

// How long a name with these characters may be is what a cgroup's directory may have.
std::string Nonce() { return fmt::format("{:08x}", std::random_device{}()); }

std::unexpected<Status> StateError(const std::string& what) {
  return Fail(errors::kMachineState, what + ": " + os::ErrnoText(errno));
}

Result<void> MakePrivateDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return StateError("mkdir " + path);
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return StateError("stat " + path);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 022) != 0) {
    return Fail(errors::kMachineState,
                path + " must be a directory of this user that nobody else can write");
  }
  return {};
}

Result<os::UniqueFd> LockState(const std::string& state) {
  const std::string path = state + "/lock";
  os::UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return StateError("open " + path);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Fail(errors::kMachineState, "another helper works in " + state);
  }
  return lock;
}

// Made once, so that cgroups of two state directories never have one name.
Result<std::string> InstanceOf(const std::string& state) {
  const std::string path = state + "/instance";
  if (auto text = os::ReadSmallFile(path); text && text->size() == 8) return *std::move(text);
  const std::string instance = Nonce();
  const os::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.valid() || ::write(file.get(), instance.data(), instance.size()) != 8 ||
      ::fsync(file.get()) != 0) {
    return StateError("make " + path);
  }
  return instance;
}

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

// In clock ticks since the boot; 0 when there is no such process.
std::uint64_t StartOf(pid_t pid) {
  const auto text = os::ReadSmallFile("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = text ? text->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text->substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;  // counted as in proc(5)
  std::uint64_t start = 0;
  fields >> start;
  return start;
}

// The address of a socket in `directory`, which may have a longer path than addresses do.
class SocketAddress {
 public:
  static Result<SocketAddress> In(const std::string& directory) {
    SocketAddress address;
    CAISSON_ASSIGN(address.directory_, os::OpenFile(directory, O_PATH | O_DIRECTORY));
    address.name_.sun_family = AF_UNIX;
    const std::string path =
        fmt::format("/proc/self/fd/{}/{}", address.directory_.get(), kSocketName);
    path.copy(address.name_.sun_path, sizeof address.name_.sun_path - 1);
    return address;
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name_); }
  static constexpr socklen_t size() { return sizeof(sockaddr_un); }

 private:
  os::UniqueFd directory_;
  sockaddr_un name_{};
};

bool HasEnded(int pidfd) {
  pollfd event{pidfd, POLLIN, 0};
  return ::poll(&event, 1, 0) > 0;
}

std::string HostsFile(const MachineSpec& spec, const std::string& ip) {
  std::string text = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n";
  text += (ip.empty() ? "127.0.1.1" : ip) + " " + spec.host_name + "\n";
  return text;
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
                                                 std::unique_ptr<Networks> networks) {
  CAISSON_ASSIGN(images::Store store, images::Store::Open(options.images));
  std::unique_ptr<Workshop> workshop(new Workshop(options, std::move(store)));
  workshop->networks_ = std::move(networks);
  CAISSON_TRY(workshop->Furnish());
  return workshop;
}

Result<void> Workshop::Furnish() {
  CAISSON_TRY(MakePrivateDirectory(options_.state));
  char* real = ::realpath(options_.state.c_str(), nullptr);
  if (real == nullptr) return StateError("find " + options_.state);
  options_.state = real;
  std::free(real);  // NOLINT(cppcoreguidelines-no-malloc): realpath's
  CAISSON_ASSIGN(lock_, LockState(options_.state));
  for (const char* part : {"/machines", "/snapshots", "/templates", "/scratch", "/set-aside"}) {
    CAISSON_TRY(MakePrivateDirectory(options_.state + part));
  }
  CAISSON_ASSIGN(instance_, InstanceOf(options_.state));
  CAISSON_ASSIGN(boot_, os::ReadSmallFile("/proc/sys/kernel/random/boot_id"));
  if (boot_.ends_with('\n')) boot_.pop_back();
  CAISSON_ASSIGN(agent_, OpenAgent(options_.agent));
  CAISSON_ASSIGN(filter_, os::BuildFilter(MachineSyscalls(), EPERM));
  if (os::LandlockAbi() >= 6) {
    CAISSON_ASSIGN(landlock_, os::MakeScopeRuleset());
  }
  CAISSON_ASSIGN(roots_, RootBuilder::Make(options_.state + "/scratch"));
  CAISSON_TRY(Groups::Plan("probe"));  // says now what every machine would fail of
  return {};
}

Result<std::uint32_t> Workshop::TakeIndex() {
  const std::lock_guard lock(mutex_);
  // In turn, so that what is left of a machine meets the next one of its number late.
  for (std::uint32_t tried = 0; tried < kMaxMachines; ++tried) {
    const std::uint32_t index = next_;
    next_ = (next_ + 1) % kMaxMachines;
    if (used_.insert(index).second) return index;
  }
  return Fail(errors::kMachineFull,
              fmt::format("there are {} machines on this host, which is the most", kMaxMachines));
}

void Workshop::ReturnIndex(std::uint32_t index) {
  const std::lock_guard lock(mutex_);
  used_.erase(index);
}

Result<void> Workshop::Write(const Slot& slot, bool durable) const {
  return WriteRecord(slot.directory, slot.record, durable);
}

Result<void> Workshop::MakeDiskOf(const Slot& slot, const std::string& source, bool grow) const {
  if (source.empty()) {
    return MakeDisk(options_.state + "/templates", slot.record.spec.disk_bytes, slot.disk());
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
  CAISSON_ASSIGN(record.index, TakeIndex());
  record.slot = fmt::format("caisson-{}-{}-{}", instance_, record.index, Nonce());
  record.spec.image = slot->image->image.id;
  record.spec.disk_bytes = disk_bytes;
  slot->directory = MachinesDirectory() + "/" + record.slot;
  const auto make = [&]() -> Result<void> {
    CAISSON_ASSIGN(record.groups, Groups::Plan(record.slot));
    if (::mkdir(slot->directory.c_str(), 0700) != 0) {
      if (errno == ENOSPC) return Fail(errors::kMachineFull, "the host's disk is full");
      return StateError("mkdir " + slot->directory);
    }
    CAISSON_TRY(Write(*slot, false));
    CAISSON_TRY(MakeDiskOf(*slot, source, grow));
    return Prepare(*slot);
  };
  if (auto made = make(); !made) {
    (void)Remove(*slot);  // what stays is removed with the next start
    return Fail(std::move(made).error());
  }
  return slot;
}

Result<os::UniqueFd> Workshop::Listen(const Slot& slot) const {
  CAISSON_ASSIGN(const SocketAddress address, SocketAddress::In(slot.directory));
  (void)::unlink((slot.directory + "/" + kSocketName).c_str());
  os::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return os::SyscallError("socket");
  if (::bind(socket.get(), address.get(), SocketAddress::size()) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return os::SyscallError("listen for a machine's agent");
  }
  return socket;
}

Result<void> Workshop::Prepare(Slot& slot) {
  Record& record = slot.record;
  CAISSON_ASSIGN(const NetworkPlace network, networks_->Make());
  record.network = network.index;
  record.ip = network.address;
  CAISSON_ASSIGN(record.groups, Groups::Plan(record.slot));
  CAISSON_TRY(Write(slot, false));
  CAISSON_TRY(record.groups.Make());
  CAISSON_ASSIGN(const os::UniqueFd listener, Listen(slot));
  CAISSON_ASSIGN(const os::UniqueFd unified, record.groups.OpenUnified());
  CAISSON_ASSIGN(const auto agent_tasks, record.groups.OpenAgentTasks());
  CAISSON_ASSIGN(const auto command_tasks, record.groups.OpenCommandTasks());
  BootOptions options{
      .program = agent_.get(),
      .arguments = {"caisson-agent", "--listen-fd", std::to_string(kListenFd), "--cgroup-procs"},
      .environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
      .listener = listener.get(),
      .command_tasks = command_tasks,
      .agent_tasks = agent_tasks,
      .unified_group = unified.get(),
      .network = network.path,
      .first_host_id = kFirstHostId + record.index * kIdsPerMachine,
      .landlock = landlock_.get(),
      .filter = filter_};
  std::string tasks;
  for (std::size_t i = 0; i < command_tasks.size(); ++i) {
    tasks += (i == 0 ? "" : ",") + std::to_string(kListenFd + 1 + static_cast<int>(i));
  }
  options.arguments.push_back(std::move(tasks));
  const auto build_root = [&](int user_namespace) -> Result<os::UniqueFd> {
    CAISSON_ASSIGN(const os::UniqueFd disk, MountDisk(slot.disk(), user_namespace));
    return roots_->Build(record.slot, slot.image->image.root, disk.get(), user_namespace,
                         options.first_host_id);
  };
  CAISSON_ASSIGN(slot.prepared, jail::Prepare(options, build_root));
  return {};
}

Result<void> Workshop::Start(Slot& slot, bool first_time) {
  Record& record = slot.record;
  const MachineSpec& spec = record.spec;
  CAISSON_TRY(record.groups.Limit(
      {.cpus = spec.cpus, .memory_bytes = spec.memory_bytes, .pids = spec.pids}));
  CAISSON_TRY(networks_->Apply(record.network, spec.network));
  Identity identity{.host_name = spec.host_name, .files = {}};
  if (first_time) {
    identity.files.emplace_back("/etc/hostname", spec.host_name + "\n");
    identity.files.emplace_back("/etc/hosts", HostsFile(spec, record.ip));
  }
  std::string resolvers;
  for (const std::string& server : networks_->name_servers()) {
    resolvers += "nameserver " + server + "\n";
  }
  identity.files.emplace_back("/etc/resolv.conf", std::move(resolvers));
  Prepared prepared = *std::move(slot.prepared);
  slot.prepared.reset();
  CAISSON_ASSIGN(os::ChildProcess agent, jail::Start(std::move(prepared), identity));
  record.agent = agent.pid();
  record.agent_start = StartOf(agent.pid());
  record.boot = boot_;
  record.phase = Phase::kRunning;
  CAISSON_TRY(Write(slot, false));
  slot.agent = agent.Release();
  return {};
}

Result<void> Workshop::Stop(Slot& slot) {
  slot.prepared.reset();
  CAISSON_TRY(slot.record.groups.Remove(kPatience));
  (void)slot.Lives();  // reaps
  slot.agent.Reset();
  CAISSON_TRY(AwaitReleased(slot.disk(), kPatience));
  if (slot.record.network != 0) CAISSON_TRY(networks_->Remove(slot.record.network));
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
  if (slot.record.network != 0) CAISSON_TRY(networks_->Remove(slot.record.network));
  slot.record.network = 0;
  // The disk goes with its last mount, which the kernel may take away a little later.
  std::error_code error;
  fs::remove_all(slot.directory, error);
  if (error)
    return Fail(errors::kMachineState, "remove " + slot.directory + ": " + error.message());
  slot.image.reset();
  ReturnIndex(slot.record.index);
  return {};
}

Result<os::UniqueFd> Workshop::Connect(const Slot& slot) const {
  CAISSON_ASSIGN(const SocketAddress address, SocketAddress::In(slot.directory));
  // Not blocking: an agent that accepts nothing must not hold this process.
  os::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return os::SyscallError("socket");
  if (::connect(socket.get(), address.get(), SocketAddress::size()) != 0) {
    return Fail(errors::kMachineAgentLost,
                "the machine's agent takes no connection: " + os::ErrnoText(errno));
  }
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) {
    return os::SyscallError("connect to a machine's agent");
  }
  return socket;
}

// --- adoption ---

Result<std::vector<std::unique_ptr<Slot>>> Workshop::Adopt() {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(MachinesDirectory(), error)) {
    names.push_back(entry.path().filename());
  }
  if (error) return Fail(errors::kMachineState, "list " + MachinesDirectory());
  std::vector<std::unique_ptr<Slot>> adopted;
  std::set<std::uint32_t> networks;
  for (const std::string& name : names) {
    CAISSON_ASSIGN(std::unique_ptr<Slot> slot, AdoptOne(name));
    if (slot == nullptr) continue;
    networks.insert(slot->record.network);
    adopted.push_back(std::move(slot));
  }
  CAISSON_ASSIGN(const std::vector<std::uint32_t> there, networks_->List());
  for (const std::uint32_t index : there) {
    if (!networks.contains(index)) CAISSON_TRY(networks_->Remove(index));
  }
  DetachStrays(options_.state);
  return adopted;
}

// Null when it was nothing that stays.
Result<std::unique_ptr<Slot>> Workshop::AdoptOne(const std::string& name) {
  auto slot = std::make_unique<Slot>();
  slot->directory = MachinesDirectory() + "/" + name;
  auto record = ReadRecord(slot->directory, name);
  if (!record) {
    CAISSON_TRY(SetAside(name));
    return nullptr;
  }
  slot->record = *std::move(record);
  {
    const std::lock_guard lock(mutex_);
    used_.insert(slot->record.index);
  }
  if (slot->record.phase == Phase::kMaking || slot->record.phase == Phase::kRemoving) {
    CAISSON_TRY(Remove(*slot));
    return nullptr;
  }
  if (auto held = store_.Hold(slot->record.spec.image)) slot->image = *std::move(held);
  CAISSON_TRY(AdoptRunning(*slot));
  return slot;
}

Result<void> Workshop::AdoptRunning(Slot& slot) {
  Record& record = slot.record;
  ThawDisk(slot.disk());
  if (record.boot == boot_ && record.agent > 0 && StartOf(record.agent) == record.agent_start) {
    slot.agent.Reset(static_cast<int>(::syscall(SYS_pidfd_open, record.agent, 0)));
  }
  if (record.phase == Phase::kPausedOnDisk || !slot.Lives()) return Stop(slot);
  // A network that cannot be had stays closed; the machine's files are its owner's all the same.
  if (!networks_->Adopt(record.network, record.spec.network)) return Stop(slot);
  return record.phase == Phase::kPausedInMemory ? record.groups.Freeze() : record.groups.Thaw();
}

// A record that cannot be read, as after a power failure: nothing runs of it afterwards, and its
// disk is kept for the operator.
Result<void> Workshop::SetAside(const std::string& name) {
  const std::string directory = MachinesDirectory() + "/" + name;
  CAISSON_ASSIGN(Groups groups, Groups::Plan(name));
  CAISSON_TRY(groups.Remove(kPatience));
  std::error_code error;
  if (!fs::exists(directory + "/disk.img", error)) {
    fs::remove_all(directory, error);
  } else {
    fs::rename(directory, options_.state + "/set-aside/" + name, error);
  }
  if (error) return Fail(errors::kMachineState, "set " + directory + " aside: " + error.message());
  return {};
}

}  // namespace caisson::machine::jail
