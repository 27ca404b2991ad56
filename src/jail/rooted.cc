// SPDX-License-Identifier: Apache-2.0
#include "jail/rooted.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "errors/os.h"
#include "os/argument_pointers.h"
#include "os/process.h"
#include "os/syscall_error.h"
#include "os/user_namespace.h"

namespace caisson::jail {
namespace {

struct Namespace {
  Wall wall;
  std::uint64_t flag;
};
constexpr std::array<Namespace, 7> kNamespaces = {{
    {Wall::kUserNamespace, CLONE_NEWUSER},
    {Wall::kPidNamespace, CLONE_NEWPID},
    {Wall::kMountNamespace, CLONE_NEWNS},
    {Wall::kNetworkNamespace, CLONE_NEWNET},
    {Wall::kIpcNamespace, CLONE_NEWIPC},
    {Wall::kUtsNamespace, CLONE_NEWUTS},
    {Wall::kCgroupNamespace, CLONE_NEWCGROUP},
}};

std::uint64_t Flags(const WallSet& leave_out) {
  std::uint64_t flags = 0;
  for (const Namespace& ns : kNamespaces) {
    if (!leave_out.Has(ns.wall)) flags |= ns.flag;
  }
  return flags;
}

// What the child needs, made before it: it may not allocate.
struct ChildPlan {
  int go = -1;       // one byte comes once the parent has done its part
  int release = -1;  // its other end
  int failure = -1;  // a ChildFailure is written here; closed by a successful exec
  int null = -1;
  int channel = -1;
  int log = -1;
  const Root* root = nullptr;
  const char* program = nullptr;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  std::uint64_t max_open_files = 0;
  sock_fprog filter{};
  WallSet leave_out;
};
// What the parent sends when the child's id maps are written.
constexpr char kChangeUser = 'n';
constexpr char kKeepUser = 'k';

struct ChildFailure {
  Wall wall = Wall::kCleanStart;
  int error = 0;
  char step[56] = {};
};

[[noreturn]] void Give(const ChildPlan& plan, Wall wall, const char* step) {
  ChildFailure failure{.wall = wall, .error = errno};
  std::strncpy(failure.step, step, sizeof failure.step - 1);
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

void PlaceDescriptors(const ChildPlan& plan) {
  if (::dup2(plan.null, 0) < 0 || ::dup2(plan.log, 1) < 0 || ::dup2(plan.log, 2) < 0 ||
      ::dup2(plan.channel, kChannelFd) < 0) {
    Give(plan, Wall::kCleanStart, "place the descriptors");
  }
  if (plan.leave_out.Has(Wall::kCleanStart)) return;
  constexpr unsigned kCloseOnExec = 4;  // CLOSE_RANGE_CLOEXEC
  if (::syscall(SYS_close_range, kChannelFd + 1, ~0u, kCloseOnExec) != 0) {
    Give(plan, Wall::kCleanStart, "close the other descriptors");
  }
}

void LowerLimit(const ChildPlan& plan, __rlimit_resource_t resource, std::uint64_t value) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) Give(plan, Wall::kResourceLimits, "read a limit");
  const rlim_t lowered = std::min<rlim_t>(value, limit.rlim_max);
  limit = {.rlim_cur = lowered, .rlim_max = lowered};
  if (::setrlimit(resource, &limit) != 0) Give(plan, Wall::kResourceLimits, "lower a limit");
}

void LowerLimits(const ChildPlan& plan) {
  if (plan.leave_out.Has(Wall::kResourceLimits)) return;
  LowerLimit(plan, RLIMIT_CORE, 0);
  LowerLimit(plan, RLIMIT_NOFILE, plan.max_open_files);
  LowerLimit(plan, RLIMIT_MEMLOCK, 0);
  LowerLimit(plan, RLIMIT_MSGQUEUE, 0);
}

// Raw calls: libc's would reach for its own threads' list, which the child has not got.
void BecomeNobody(const ChildPlan& plan) {
  const long nobody = os::kNobody;
  if (::syscall(SYS_setgroups, 0, nullptr) != 0 ||
      ::syscall(SYS_setresgid, nobody, nobody, nobody) != 0 ||
      ::syscall(SYS_setresuid, nobody, nobody, nobody) != 0) {
    Give(plan, Wall::kUnprivilegedUser, "change the user");
  }
}

void DropCapabilities(const ChildPlan& plan) {
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  for (int capability = 0; capability < 64; ++capability) {
    const int held = ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
    if (held < 0) break;
    if (held == 1 && ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) {
      Give(plan, Wall::kCapabilities, "empty the bounding set");
    }
  }
  const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                             SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  if (::prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) != 0) {
    Give(plan, Wall::kCapabilities, "lock the securebits");
  }
}

void ClearCapabilities(const ChildPlan& plan) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capset, &header, data) != 0) {
    Give(plan, Wall::kCapabilities, "clear the capabilities");
  }
}

void DropPrivileges(const ChildPlan& plan, bool change_user) {
  const bool drop = !plan.leave_out.Has(Wall::kCapabilities);
  if (drop) DropCapabilities(plan);
  if (change_user) BecomeNobody(plan);
  if (drop) ClearCapabilities(plan);
}

[[noreturn]] void RunChild(const ChildPlan& plan) {
  char go = 0;
  // Whatever other children hold of the pipe, the parent's end is seen while this one waits.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::close(plan.release);
  if (::read(plan.go, &go, 1) != 1) ::_exit(126);  // the parent gave up, or has died
  ::prctl(PR_SET_PDEATHSIG, 0);
  ::setsid();
  ::umask(022);
  ResetSignals();
  PlaceDescriptors(plan);
  const char* step = "";
  if (!plan.leave_out.Has(Wall::kEmptyRoot)) {
    if (const int error = plan.root->Enter(step)) {
      errno = error;
      Give(plan, Wall::kEmptyRoot, step);
    }
  }
  if (!plan.leave_out.Has(Wall::kUtsNamespace) && ::sethostname("caisson", 7) != 0) {
    Give(plan, Wall::kUtsNamespace, "set the host name");
  }
  // What a call adds of its own is little. Who forks many makes huge pages of what they share.
  ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  LowerLimits(plan);
  DropPrivileges(plan, go == kChangeUser);
  if (!plan.leave_out.Has(Wall::kNoNewPrivileges) &&
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    Give(plan, Wall::kNoNewPrivileges, "set no_new_privs");
  }
  if (!plan.leave_out.Has(Wall::kSeccomp) &&
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &plan.filter) != 0) {
    Give(plan, Wall::kSeccomp, "load the filter");
  }
  ::execve(plan.program, plan.arguments, plan.environment);
  Give(plan, Wall::kCleanStart, "execute the program");
}

// A copy of `fd` that no dup2 onto the low descriptors can overwrite.
Result<os::UniqueFd> MoveUp(int fd) {
  os::UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 10));
  if (!copy.valid()) return os::SyscallError("duplicate a descriptor");
  return copy;
}

struct Descriptors {
  os::UniqueFd go_read, go_write, failure_read, failure_write, null, channel, log;
};

Result<Descriptors> OpenDescriptors(const RootedOptions& options) {
  Descriptors fds;
  CAISSON_ASSIGN(os::FdPair go, os::MakePipe());
  CAISSON_ASSIGN(os::FdPair failure, os::MakePipe());
  CAISSON_ASSIGN(os::UniqueFd null, os::OpenFile("/dev/null", O_RDWR));
  CAISSON_ASSIGN(fds.go_read, MoveUp(go.first.get()));
  CAISSON_ASSIGN(fds.failure_write, MoveUp(failure.second.get()));
  CAISSON_ASSIGN(fds.null, MoveUp(null.get()));
  CAISSON_ASSIGN(fds.channel, MoveUp(options.channel));
  CAISSON_ASSIGN(fds.log, MoveUp(options.log >= 0 ? options.log : null.get()));
  fds.go_write = std::move(go.second);
  fds.failure_read = std::move(failure.first);
  return fds;
}

Result<void> AwaitExec(int failure_fd, const std::string& program) {
  ChildFailure failure;
  ssize_t n = 0;
  do {
    n = ::read(failure_fd, &failure, sizeof failure);
  } while (n < 0 && errno == EINTR);
  if (n == 0) return {};
  if (n != sizeof failure) return os::SyscallError("start " + program);
  const std::string step(failure.step, ::strnlen(failure.step, sizeof failure.step));
  if (step == "execute the program") {
    return os::SyscallError("execute " + program + " of the root file system", failure.error);
  }
  auto status = os::SyscallError(step, failure.error);
  if (status.error().code == errors::kOsOpenFiles) return status;
  return Unavailable(failure.wall, status.error().message);
}

// 0 or why `flags` cannot be had.
int TryNamespaces(std::uint64_t flags) {
  auto clone = os::CloneWithNamespaces(flags);
  if (!clone) return errno;
  if (clone->pid == 0) ::_exit(0);
  os::ChildProcess child(clone->pid, std::move(clone->pidfd));
  (void)child.Wait(std::chrono::seconds(5));
  return 0;
}

std::unexpected<Status> Explain(const WallSet& leave_out, const Status& status) {
  if (status.code == errors::kOsOpenFiles) return std::unexpected(status);
  for (const Namespace& ns : kNamespaces) {
    if (leave_out.Has(ns.wall)) continue;
    if (TryNamespaces(CLONE_NEWUSER | ns.flag) != 0) return Unavailable(ns.wall, status.message);
  }
  return Unavailable(Wall::kUserNamespace, status.message);
}

WallReport Report(Wall wall, const WallSet& leave_out) {
  return leave_out.Has(wall) ? Missing(wall, "left out by DangerouslyLeaveOut") : Standing(wall);
}

std::vector<WallReport> Reports(const os::Cgroup& cgroup, const WallSet& leave_out) {
  std::vector<WallReport> reports;
  reports.reserve(kWallCount);
  for (const Namespace& ns : kNamespaces) reports.push_back(Report(ns.wall, leave_out));
  for (Wall wall : {Wall::kEmptyRoot, Wall::kCleanStart, Wall::kNoNewPrivileges,
                    Wall::kCapabilities, Wall::kResourceLimits, Wall::kSeccomp}) {
    reports.push_back(Report(wall, leave_out));
  }
  static constexpr std::array<Wall, 3> kGroups = {Wall::kMemoryCgroup, Wall::kCpuCgroup,
                                                  Wall::kPidsCgroup};
  for (os::Controller controller : os::kControllers) {
    const Wall wall = kGroups[static_cast<std::size_t>(controller)];
    const auto refused =
        std::ranges::find(cgroup.refused(), controller, &os::Cgroup::Refused::controller);
    reports.push_back(refused == cgroup.refused().end() ? Report(wall, leave_out)
                                                        : Missing(wall, refused->reason));
  }
  return reports;
}

std::string NextGroupName() {
  static std::atomic<unsigned> counter{0};
  return os::Cgroup::NamePrefix() + "root" + std::to_string(counter++);
}

}  // namespace

Result<Jailed> SpawnInRoot(const RootedOptions& options) {
  const WallSet& leave_out = options.leave_out.walls;
  // Without it, the root would be built in the host's own tree.
  if (leave_out.Has(Wall::kMountNamespace) && !leave_out.Has(Wall::kEmptyRoot)) {
    return Unavailable(Wall::kMountNamespace, "left out, but the root needs it");
  }
  CAISSON_ASSIGN(Descriptors fds, OpenDescriptors(options));
  std::vector<std::string> words = options.arguments;
  std::vector<std::string> variables = options.environment;
  const std::vector<char*> arguments = os::ArgumentPointers(words);
  const std::vector<char*> environment = os::ArgumentPointers(variables);
  const ChildPlan plan{.go = fds.go_read.get(),
                       .release = fds.go_write.get(),
                       .failure = fds.failure_write.get(),
                       .null = fds.null.get(),
                       .channel = fds.channel.get(),
                       .log = fds.log.get(),
                       .root = options.root,
                       .program = options.program.c_str(),
                       .arguments = arguments.data(),
                       .environment = environment.data(),
                       .max_open_files = options.max_open_files,
                       .filter = {.len = static_cast<unsigned short>(options.filter.size()),
                                  .filter = const_cast<sock_filter*>(options.filter.data())},
                       .leave_out = leave_out};

  Jailed jailed;
  auto clone = os::CloneWithNamespaces(Flags(leave_out));
  if (!clone) return Explain(leave_out, clone.error());
  if (clone->pid == 0) RunChild(plan);
  jailed.process = os::ChildProcess(clone->pid, std::move(clone->pidfd));
  fds.go_read.Reset();
  fds.failure_write.Reset();
  bool has_nobody = ::geteuid() == 0;
  if (!leave_out.Has(Wall::kUserNamespace)) {
    const auto maps = os::WriteIdMaps(clone->pid, os::kNobody);
    if (!maps && maps.error().code == errors::kOsOpenFiles) return std::unexpected(maps.error());
    if (!maps) return Unavailable(Wall::kUserNamespace, maps.error().message);
    has_nobody = *maps == os::IdMap::kWhole;
  }
  const bool change_user = has_nobody && !leave_out.Has(Wall::kUnprivilegedUser);
  jailed.cgroup = os::Cgroup::Make(NextGroupName(), options.limits);
  CAISSON_TRY(jailed.cgroup.Attach(clone->pid));
  const char go = change_user ? kChangeUser : kKeepUser;
  if (::write(fds.go_write.get(), &go, 1) != 1) return os::SyscallError("release the child");
  CAISSON_TRY(AwaitExec(fds.failure_read.get(), options.program));
  jailed.walls = Reports(jailed.cgroup, leave_out);
  jailed.walls.push_back(change_user || ::geteuid() != 0
                             ? Standing(Wall::kUnprivilegedUser)
                             : Missing(Wall::kUnprivilegedUser,
                                       "user 65534 cannot be mapped, so the jail runs as root"));
  return jailed;
}

}  // namespace caisson::jail
