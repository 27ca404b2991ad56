// SPDX-License-Identifier: Apache-2.0
#include "jail/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <utility>

#include "errors/jail.h"
#include "errors/os.h"
#include "os/argument_pointers.h"
#include "os/mount.h"
#include "os/syscall_error.h"
#include "os/user_namespace.h"

namespace caisson::jail {
namespace {

struct Namespace {
  Wall wall;
  std::uint64_t flag;
};
constexpr std::array<Namespace, 6> kNamespaces = {{
    {Wall::kPidNamespace, CLONE_NEWPID},
    {Wall::kMountNamespace, CLONE_NEWNS},
    {Wall::kNetworkNamespace, CLONE_NEWNET},
    {Wall::kIpcNamespace, CLONE_NEWIPC},
    {Wall::kUtsNamespace, CLONE_NEWUTS},
    {Wall::kCgroupNamespace, CLONE_NEWCGROUP},
}};

// One way to start the child: which of the namespaces, and whether in a user namespace of its own.
struct Rung {
  bool user = false;
  WallSet namespaces;
};

WallSet Namespaces(const WallSet& leave_out, bool mandatory_only) {
  WallSet set;
  for (const Namespace& ns : kNamespaces) {
    if (leave_out.Has(ns.wall) || (mandatory_only && !InfoOf(ns.wall).mandatory)) continue;
    set.Add(ns.wall);
  }
  return set;
}

std::uint64_t Flags(const Rung& rung) {
  std::uint64_t flags = rung.user ? CLONE_NEWUSER : 0;
  for (const Namespace& ns : kNamespaces) {
    if (rung.namespaces.Has(ns.wall)) flags |= ns.flag;
  }
  return flags;
}

// The ways to try, strongest first. Only the last one, which needs the grant, lacks a mandatory
// wall.
std::vector<Rung> Ladder(const WallSet& leave_out, bool allow_unjailed) {
  std::vector<Rung> ladder;
  for (bool user : {true, false}) {
    if (user ? leave_out.Has(Wall::kUserNamespace) : ::geteuid() != 0) continue;
    ladder.push_back({user, Namespaces(leave_out, false)});
    ladder.push_back({user, Namespaces(leave_out, true)});
  }
  if (allow_unjailed) ladder.push_back({});
  return ladder;
}

// Tries `flags` in a child that ends at once: 0 or why it cannot be.
int TryNamespaces(std::uint64_t flags) {
  auto clone = os::CloneWithNamespaces(flags);
  if (!clone) return errno;
  if (clone->pid == 0) ::_exit(0);
  os::ChildProcess child(clone->pid, std::move(clone->pidfd));
  (void)child.Wait(std::chrono::seconds(5));
  return 0;
}

// Why a namespace that the child is not in cannot be had.
WallReport MissingNamespace(const Namespace& ns, const WallSet& leave_out) {
  if (leave_out.Has(ns.wall)) return Missing(ns.wall, "left out by DangerouslyLeaveOut");
  if (const int error = TryNamespaces(CLONE_NEWUSER)) {
    if (::geteuid() != 0) {
      return Missing(ns.wall, "user namespaces are not allowed: " + os::ErrnoText(error));
    }
    const int plain = TryNamespaces(ns.flag);
    return Missing(ns.wall, "clone3: " + os::ErrnoText(plain != 0 ? plain : error));
  }
  const int error = TryNamespaces(CLONE_NEWUSER | ns.flag);
  return Missing(ns.wall, error != 0 ? "clone3: " + os::ErrnoText(error)
                                     : "the namespaces cannot be had together");
}

std::vector<WallReport> ReportNamespaces(const Rung& rung, const WallSet& leave_out) {
  std::vector<WallReport> reports;
  if (rung.user) {
    reports.push_back(Standing(Wall::kUserNamespace));
  } else if (leave_out.Has(Wall::kUserNamespace)) {
    reports.push_back(Missing(Wall::kUserNamespace, "left out by DangerouslyLeaveOut"));
  } else {
    const int error = TryNamespaces(CLONE_NEWUSER);
    reports.push_back(Missing(Wall::kUserNamespace, error != 0 ? "clone3: " + os::ErrnoText(error)
                                                               : "its id maps cannot be written"));
  }
  for (const Namespace& ns : kNamespaces) {
    reports.push_back(rung.namespaces.Has(ns.wall) ? Standing(ns.wall)
                                                   : MissingNamespace(ns, leave_out));
  }
  return reports;
}

void ReportCgroup(const os::Cgroup& cgroup, const WallSet& leave_out,
                  std::vector<WallReport>& reports) {
  static constexpr std::array<Wall, 3> kWalls = {Wall::kMemoryCgroup, Wall::kCpuCgroup,
                                                 Wall::kPidsCgroup};
  for (os::Controller controller : os::kControllers) {
    const Wall wall = kWalls[static_cast<std::size_t>(controller)];
    const os::Cgroup::Refused* refused = nullptr;
    for (const auto& entry : cgroup.refused()) {
      if (entry.controller == controller) refused = &entry;
    }
    if (leave_out.Has(wall)) {
      reports.push_back(Missing(wall, "left out by DangerouslyLeaveOut"));
    } else {
      reports.push_back(refused == nullptr ? Standing(wall) : Missing(wall, refused->reason));
    }
  }
}

// Everything that the child needs, made before it: it may not allocate.
struct ChildPlan {
  int go = -1;       // one byte is read from here once the parent has done its part
  int release = -1;  // and written here
  int failure = -1;  // a ChildFailure is written here; closed by a successful exec
  int program = -1;
  int null = -1;
  int channel = -1;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  bool close_others = true;
  int (*entry)(const SealTicket&) = nullptr;
  const SealTicket* ticket = nullptr;
};
struct ChildFailure {
  int is_clean_start = 0;
  int error = 0;
};

[[noreturn]] void FailChild(const ChildPlan& plan, bool clean_start) {
  const ChildFailure failure{clean_start, errno};
  (void)!::write(plan.failure, &failure, sizeof failure);
  ::_exit(127);
}

void ResetSignals() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < SIGRTMIN; ++signal) ::sigaction(signal, &action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Async-signal-safe only.
void PlaceDescriptors(const ChildPlan& plan) {
  ::dup2(plan.null, 0);
  ::dup2(plan.null, 1);
  if (::fcntl(2, F_GETFD) < 0) ::dup2(plan.null, 2);
  if (::dup2(plan.channel, kChannelFd) < 0) FailChild(plan, true);
  constexpr unsigned kCloseOnExec = 4;  // CLOSE_RANGE_CLOEXEC
  const unsigned how = plan.entry == nullptr ? kCloseOnExec : 0;
  if (plan.close_others && ::syscall(SYS_close_range, kChannelFd + 1, ~0u, how) != 0) {
    FailChild(plan, true);
  }
}

[[noreturn]] void RunChild(const ChildPlan& plan) {
  char go = 0;
  // Whatever other children hold of the pipe, the parent's end is seen.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::close(plan.release);
  if (::read(plan.go, &go, 1) != 1) ::_exit(126);  // the parent gave up, or has died
  ::setsid();
  ResetSignals();
  PlaceDescriptors(plan);
  if (plan.entry != nullptr) ::_exit(plan.entry(*plan.ticket));
  ::syscall(SYS_execveat, plan.program, "", plan.arguments, plan.environment, AT_EMPTY_PATH);
  FailChild(plan, false);
}

// A copy of `fd` that no dup2 onto the low descriptors can overwrite.
Result<os::UniqueFd> MoveUp(int fd) {
  os::UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 10));
  if (!copy.valid()) return os::SyscallError("duplicate a descriptor");
  return copy;
}

struct Descriptors {
  os::UniqueFd go_read, go_write, failure_read, failure_write, program, null, channel;
};

Result<Descriptors> OpenDescriptors(const SpawnOptions& options) {
  Descriptors fds;
  CAISSON_ASSIGN(os::FdPair go, os::MakePipe());
  CAISSON_ASSIGN(os::FdPair failure, os::MakePipe());
  CAISSON_ASSIGN(os::UniqueFd program, os::OpenFile(options.executable, O_PATH));
  CAISSON_ASSIGN(os::UniqueFd null, os::OpenFile("/dev/null", O_RDWR));
  CAISSON_ASSIGN(fds.go_read, MoveUp(go.first.get()));
  CAISSON_ASSIGN(fds.failure_write, MoveUp(failure.second.get()));
  CAISSON_ASSIGN(fds.program, MoveUp(program.get()));
  CAISSON_ASSIGN(fds.null, MoveUp(null.get()));
  CAISSON_ASSIGN(fds.channel, MoveUp(options.channel));
  fds.go_write = std::move(go.second);
  fds.failure_read = std::move(failure.first);
  return fds;
}

// Waits until the child has executed its program.
Result<void> AwaitExec(int failure_fd, const std::string& program) {
  ChildFailure failure;
  ssize_t n = 0;
  do {
    n = ::read(failure_fd, &failure, sizeof failure);
  } while (n < 0 && errno == EINTR);
  if (n == 0) return {};
  if (n != sizeof failure) return os::SyscallError("start " + program);
  if (failure.is_clean_start != 0) {
    return Unavailable(Wall::kCleanStart, os::ErrnoText(failure.error));
  }
  return os::SyscallError("execute " + program, failure.error);
}

std::string NextGroupName() {
  static std::atomic<unsigned> counter{0};
  return os::Cgroup::NamePrefix() + std::to_string(counter++);
}

os::CgroupLimits WantedLimits(const SpawnOptions& options) {
  os::CgroupLimits limits = options.limits;
  const WallSet& left_out = options.leave_out.walls;
  if (left_out.Has(Wall::kMemoryCgroup)) limits.memory_bytes = 0;
  if (left_out.Has(Wall::kCpuCgroup)) limits.cpus = 0;
  if (left_out.Has(Wall::kPidsCgroup)) limits.pids = 0;
  return limits;
}

// `namespaces_stand` tells a failure of the rung from one of the program.
Result<Jailed> StartOn(const Rung& rung, const SpawnOptions& options, bool& namespaces_stand) {
  CAISSON_ASSIGN(Descriptors fds, OpenDescriptors(options));
  SealTicket ticket{.standing = rung.namespaces,
                    .leave_out = options.leave_out.walls,
                    .allow_unjailed = options.allow_unjailed.has_value()};
  if (rung.user) ticket.standing.Add(Wall::kUserNamespace);
  CAISSON_ASSIGN(ticket.outer_mount_namespace, os::MountNamespaceId());
  std::vector<std::string> words = options.arguments;
  words.push_back(ticket.ToText());
  const std::vector<char*> arguments = os::ArgumentPointers(words);
  char* const no_environment[] = {nullptr};
  const bool clean = !options.leave_out.walls.Has(Wall::kCleanStart);
  const ChildPlan plan{.go = fds.go_read.get(),
                       .release = fds.go_write.get(),
                       .failure = fds.failure_write.get(),
                       .program = fds.program.get(),
                       .null = fds.null.get(),
                       .channel = fds.channel.get(),
                       .arguments = arguments.data(),
                       .environment = clean ? no_environment : environ,
                       .close_others = clean,
                       .entry = options.entry,
                       .ticket = &ticket};

  Jailed jailed;
  CAISSON_ASSIGN(os::CloneResult clone, os::CloneWithNamespaces(Flags(rung)));
  if (clone.pid == 0) RunChild(plan);
  jailed.process = os::ChildProcess(clone.pid, std::move(clone.pidfd));
  fds.go_read.Reset();
  fds.failure_write.Reset();
  if (rung.user) CAISSON_TRY(os::WriteIdMaps(clone.pid));
  namespaces_stand = true;
  jailed.cgroup = os::Cgroup::Make(NextGroupName(), WantedLimits(options));
  CAISSON_TRY(jailed.cgroup.Attach(clone.pid));
  if (::write(fds.go_write.get(), "g", 1) != 1) return os::SyscallError("release the child");
  CAISSON_TRY(AwaitExec(fds.failure_read.get(), options.executable));
  return jailed;
}

// The first mandatory namespace that cannot be had, as the reason for a refusal.
std::unexpected<Status> Refuse(const WallSet& leave_out, const Status& last) {
  if (last.code == errors::kOsOpenFiles) return std::unexpected(std::move(last));
  for (const Namespace& ns : kNamespaces) {
    if (!InfoOf(ns.wall).mandatory || leave_out.Has(ns.wall)) continue;
    const bool needs_user = ::geteuid() != 0;
    if (needs_user && TryNamespaces(CLONE_NEWUSER) != 0) {
      return Unavailable(Wall::kUserNamespace, last.message);
    }
    if (TryNamespaces((needs_user ? CLONE_NEWUSER : 0) | ns.flag) != 0) {
      return Unavailable(ns.wall, last.message);
    }
  }
  return Unavailable(Wall::kUserNamespace, last.message);
}

}  // namespace

std::string SealTicket::ToText() const {
  return "--jail=" + std::to_string(standing.bits()) + "," + std::to_string(leave_out.bits()) +
         "," + (allow_unjailed ? "1" : "0") + "," + outer_mount_namespace;
}

Result<SealTicket> SealTicket::FromText(std::string_view text) {
  const auto malformed = [] {
    return Fail(errors::kJailUnavailable,
                "The jail's ticket is malformed; this command is started by Caisson itself.");
  };
  if (!text.starts_with("--jail=")) return malformed();
  text.remove_prefix(7);
  std::array<std::uint32_t, 3> numbers{};
  for (std::uint32_t& number : numbers) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end == text.data() + text.size() || *end != ',') return malformed();
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  }
  if (!text.starts_with("mnt:[") || !text.ends_with("]")) return malformed();
  return SealTicket{.standing = WallSet::FromBits(numbers[0]),
                    .leave_out = WallSet::FromBits(numbers[1]),
                    .allow_unjailed = numbers[2] == 1,
                    .outer_mount_namespace = std::string(text)};
}

Result<Jailed> Spawn(const SpawnOptions& options) {
  const WallSet& leave_out = options.leave_out.walls;
  Status last;
  for (const Rung& rung : Ladder(leave_out, options.allow_unjailed.has_value())) {
    bool namespaces_stand = false;
    auto jailed = StartOn(rung, options, namespaces_stand);
    if (!jailed && namespaces_stand) return jailed;
    if (!jailed) {
      last = std::move(jailed).error();
      continue;
    }
    jailed->walls = ReportNamespaces(rung, leave_out);
    ReportCgroup(jailed->cgroup, leave_out, jailed->walls);
    jailed->walls.push_back(leave_out.Has(Wall::kCleanStart)
                                ? Missing(Wall::kCleanStart, "left out by DangerouslyLeaveOut")
                                : Standing(Wall::kCleanStart));
    return jailed;
  }
  return Refuse(leave_out, last);
}

}  // namespace caisson::jail
