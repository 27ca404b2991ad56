// SPDX-License-Identifier: Apache-2.0
#include "jail/walls.h"

#include <array>
#include <utility>

#include "errors/jail.h"

namespace caisson::jail {
namespace {

constexpr std::string_view kUserNamespaceAdvice =
    "allow user namespaces (sysctl user.max_user_namespaces > 0, kernel.unprivileged_userns_clone "
    "= 1, kernel.apparmor_restrict_unprivileged_userns = 0 or an AppArmor profile with userns; in "
    "a container, a seccomp profile that allows them), or run as root";
constexpr std::string_view kNamespaceAdvice =
    "needs a user namespace or CAP_SYS_ADMIN, and a kernel with this kind of namespace";
constexpr std::string_view kCgroupAdvice =
    "run as root, or in a delegated cgroup (systemd-run --user -p Delegate=yes), so that the "
    "controller is writable";

// In the order of `Wall`.
constexpr std::array<WallInfo, kWallCount> kWalls = {{
    {Wall::kUserNamespace, "user_namespace", false, "privileges over anything of the host",
     kUserNamespaceAdvice},
    {Wall::kPidNamespace, "pid_namespace", true, "sight of and signals to other processes",
     kNamespaceAdvice},
    {Wall::kMountNamespace, "mount_namespace", true, "the host's mounts", kNamespaceAdvice},
    {Wall::kNetworkNamespace, "network_namespace", true, "every network, abstract sockets too",
     kNamespaceAdvice},
    {Wall::kIpcNamespace, "ipc_namespace", true, "System V IPC and POSIX queues of others",
     kNamespaceAdvice},
    {Wall::kUtsNamespace, "uts_namespace", false, "the host's name", kNamespaceAdvice},
    {Wall::kCgroupNamespace, "cgroup_namespace", false, "the host's cgroup paths",
     kNamespaceAdvice},
    {Wall::kEmptyRoot, "empty_root", true, "every file",
     "needs the mount namespace, a user namespace that gives privileges "
     "(kernel.apparmor_restrict_unprivileged_userns = 0, or run as root), and a directory among "
     "/tmp, /proc, /dev, /usr, /etc to mount on"},
    {Wall::kCleanStart, "clean_start", true, "the environment and inherited descriptors",
     "needs close_range with CLOSE_RANGE_CLOEXEC (Linux 5.11)"},
    {Wall::kNoNewPrivileges, "no_new_privs", true, "privileges by executing a program",
     "needs Linux 3.5"},
    {Wall::kCapabilities, "capabilities", true, "all privileged calls",
     "give the process CAP_SETPCAP or user namespaces, so that it can empty its bounding set"},
    {Wall::kUnprivilegedUser, "unprivileged_user", false, "what user 0 of the host owns",
     "give the process CAP_SETUID and CAP_SETGID, or run as another user than root"},
    {Wall::kResourceLimits, "resource_limits", true, "core dumps, files, floods of processes",
     "setrlimit must be allowed"},
    {Wall::kLandlock, "landlock", false, "files and TCP, should another wall have a hole",
     "use Linux 5.13 or newer with landlock among the active LSMs (lsm= on the kernel's command "
     "line)"},
    {Wall::kSeccomp, "seccomp", true, "all system calls but those on a short list",
     "use a kernel with CONFIG_SECCOMP_FILTER (4.14 or newer); in a container, allow seccomp(2)"},
    {Wall::kMemoryCgroup, "memory_cgroup", false, "use of the host's memory beyond a limit",
     kCgroupAdvice},
    {Wall::kCpuCgroup, "cpu_cgroup", false, "use of more cores than given", kCgroupAdvice},
    {Wall::kPidsCgroup, "pids_cgroup", false, "floods of processes and threads", kCgroupAdvice},
}};

}  // namespace

std::span<const WallInfo> AllWalls() { return kWalls; }

const WallInfo& InfoOf(Wall wall) { return kWalls[static_cast<std::size_t>(wall)]; }

WallReport Standing(Wall wall, std::string detail) {
  const WallInfo& info = InfoOf(wall);
  return {.name = std::string(info.name),
          .stands = true,
          .mandatory = info.mandatory,
          .reason = std::move(detail)};
}

WallReport Missing(Wall wall, std::string reason) {
  const WallInfo& info = InfoOf(wall);
  return {.name = std::string(info.name),
          .stands = false,
          .mandatory = info.mandatory,
          .reason = std::move(reason),
          .what_to_do = std::string(info.what_to_do)};
}

std::unexpected<Status> Unavailable(Wall wall, std::string_view reason) {
  const WallInfo& info = InfoOf(wall);
  std::string message = "The jail cannot be built: wall ";
  message.append(info.name).append(" does not stand (").append(reason).append("). To do: ");
  message.append(info.what_to_do).append(". `caisson doctor` shows all walls.");
  return Fail(errors::kJailUnavailable, std::move(message));
}

}  // namespace caisson::jail
