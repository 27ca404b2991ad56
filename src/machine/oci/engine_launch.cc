// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/engine_launch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "errors/oci.h"
#include "json/writer.h"
#include "machine/oci/files.h"
#include "machine/oci/policy.h"
#include "machine/syscalls.h"
#include "os/cgroup.h"
#include "os/landlock.h"
#include "os/seccomp.h"
#include "os/syscall_error.h"

namespace caisson::machine::oci {
namespace {

constexpr int kConnectsWithin = 10'000;  // milliseconds, after the engine has started it

// What the first program needs beside what machines may. Each machine has its own filter below.
constexpr std::array kSetUpCalls = {
    "clone",     "clone3",     "setns",      "unshare",
    "mount",     "move_mount", "fsopen",     "fsconfig",
    "fsmount",   "umount2",    "pivot_root", "sethostname",
    "seccomp",   "capset",     "prctl",      "landlock_restrict_self",
    "socket",    "setsockopt", "execveat",   "setgroups",
    "setresuid", "setresgid",  "setrlimit",  "prlimit64"};

Result<void> WriteProfile(const std::string& path) {
  std::vector<os::SyscallRule> rules = MachineSyscalls();
  const auto is_set_up = [](const os::SyscallRule& rule) {
    return std::ranges::find(kSetUpCalls, std::string_view(rule.name)) != kSetUpCalls.end();
  };
  std::erase_if(rules, is_set_up);
  for (const char* call : kSetUpCalls) rules.push_back({call, "the machine is made", {}, 0});
  return WriteConfig(path, SeccompProfile(rules));
}

// For the container's first program, in a directory that the container sees.
Result<os::UniqueFd> ListenIn(const std::string& directory) {
  CAISSON_ASSIGN(const os::UniqueFd place, os::OpenFile(directory, O_PATH | O_DIRECTORY));
  (void)::unlinkat(place.get(), boot::kHandoverName, 0);
  os::UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return os::SyscallError("socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path =
      "/proc/self/fd/" + std::to_string(place.get()) + "/" + boot::kHandoverName;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), 1) != 0) {
    return os::SyscallError("listen for a container");
  }
  return socket;
}

struct Caller {
  os::UniqueFd control;
  ucred who{};
};

Result<Caller> Accept(int listener, const Engine& engine) {
  pollfd event{listener, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&event, 1, kConnectsWithin);
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) {
    return Fail(errors::kOciFailed,
                engine.runtime().program +
                    " says that it has started a container, in which nothing has begun; its "
                    "service must see the files of this host");
  }
  Caller caller{.control = os::UniqueFd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC))};
  socklen_t size = sizeof caller.who;
  if (!caller.control.valid() ||
      ::getsockopt(caller.control.get(), SOL_SOCKET, SO_PEERCRED, &caller.who, &size) != 0) {
    return os::SyscallError("hear from a container");
  }
  // An engine that is stopped while it makes a machine must not hold this process.
  const timeval patience{.tv_sec = kConnectsWithin / 1000, .tv_usec = 0};
  if (::setsockopt(caller.control.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) !=
      0) {
    return os::SyscallError("hear from a container");
  }
  return caller;
}

std::unexpected<Status> Untrue(const std::string& what) {
  return Fail(errors::kOciEngineUntrue, what + "; nothing of the machine has run");
}

bool AreSame(const std::string& one, const std::string& other) {
  struct stat first{}, second{};
  return ::stat(one.c_str(), &first) == 0 && ::stat(other.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

// Where the machine is frozen by version 2, it is still in the group of version 1 in which the
// engine would freeze its container: who pauses that must not hold the machine, which could not
// even be killed then.
Result<void> LeaveFreezer(pid_t pid) {
  const std::string own = os::FindFreezerParent();
  return own.empty() ? Result<void>{}
                     : os::WriteSmallFile(own + "/cgroup.procs", std::to_string(pid));
}

// Before the machine has a name, a policy or a limit of its own.
Result<void> Check(pid_t pid, const EngineMachine& machine) {
  const std::string proc = "/proc/" + std::to_string(pid);
  if (!AreSame(proc + "/ns/net", machine.network)) {
    return Untrue("a machine is not in its own network");
  }
  for (const char* space : {"user", "pid", "mnt", "ipc", "uts", "cgroup"}) {
    if (AreSame(proc + "/ns/" + space, std::string("/proc/self/ns/") + space)) {
      return Untrue(std::string("a machine is in this host's own namespace: ") + space);
    }
  }
  if (!machine.groups->HaveAgent(pid)) return Untrue("a machine is not in its own cgroups");
  return {};
}

}  // namespace

Result<EngineLauncher> EngineLauncher::Open(Engine engine, const std::string& agent) {
  EngineLauncher launcher(std::move(engine));
  CAISSON_ASSIGN(launcher.agent_, OpenAgent(agent));
  CAISSON_ASSIGN(launcher.filter_, os::BuildFilter(MachineSyscalls(), EPERM));
  if (os::LandlockAbi() >= 6) {
    CAISSON_ASSIGN(launcher.landlock_, os::MakeScopeRuleset());
  }
  return launcher;
}

Result<pid_t> EngineLauncher::Launch(const EngineMachine& machine,
                                     const boot::BuildRoot& build_root,
                                     const boot::Identity& identity) const {
  const EngineContainer container{.name = machine.name,
                                  .handover = machine.directory + "/handover",
                                  .seccomp_file = machine.directory + "/seccomp.json"};
  CAISSON_TRY(MakeDirectory(container.handover));
  CAISSON_TRY(WriteProfile(container.seccomp_file));
  CAISSON_ASSIGN(const os::UniqueFd listener, ListenIn(container.handover));
  CAISSON_TRY(engine_.Start(container));
  CAISSON_ASSIGN(Caller caller, Accept(listener.get(), engine_));
  CAISSON_ASSIGN(const pid_t told, engine_.FirstProcess(machine.name));
  if (caller.who.uid != 0) {
    return Untrue(engine_.runtime().program + " runs as the user " +
                  std::to_string(caller.who.uid) + ", and not as root");
  }
  if (told != caller.who.pid) {
    return Untrue(engine_.runtime().program + " says that " + std::to_string(told) +
                  " is the first process of " + machine.name + ", and the kernel says " +
                  std::to_string(caller.who.pid));
  }
  CAISSON_ASSIGN(const os::UniqueFd unified, machine.groups->OpenUnified());
  CAISSON_ASSIGN(const auto agent_tasks, machine.groups->OpenAgentTasks());
  CAISSON_ASSIGN(const auto command_tasks, machine.groups->OpenCommandTasks());
  std::string tasks;
  for (std::size_t i = 0; i < command_tasks.size(); ++i) {
    tasks += (i == 0 ? "" : ",") + std::to_string(boot::kListenFd + 1 + static_cast<int>(i));
  }
  const boot::BootOptions options{
      .program = agent_.get(),
      .arguments = {"caisson-agent", "--listen-fd", std::to_string(boot::kListenFd),
                    "--cgroup-procs", tasks},
      .environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
      .listener = machine.listener,
      .command_tasks = command_tasks,
      .agent_tasks = agent_tasks,
      .unified_group = unified.get(),
      .network = machine.network,
      .first_host_id = machine.first_host_id,
      .landlock = landlock_.get(),
      .filter = filter_};
  CAISSON_ASSIGN(boot::Prepared prepared,
                 boot::PrepareIn(caller.who.pid, std::move(caller.control), options, build_root));
  if (unified.valid()) CAISSON_TRY(LeaveFreezer(prepared.process.pid()));
  CAISSON_TRY(Check(prepared.process.pid(), machine));
  CAISSON_ASSIGN(os::ChildProcess agent, boot::Start(std::move(prepared), identity));
  const pid_t pid = agent.pid();
  (void)agent.Release();
  return pid;
}

}  // namespace caisson::machine::oci
