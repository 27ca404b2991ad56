// SPDX-License-Identifier: Apache-2.0
#include "os/user_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <sstream>
#include <string>

#include "os/fd.h"
#include "os/process.h"
#include "os/syscall_error.h"

namespace caisson::os {
namespace {

// The ids that exist in our own namespace, each onto itself, in the form of uid_map. Fails when
// "nobody" is not among them: then there is no other id to take.
Result<std::string> IdentityMap(const std::string& own_map) {
  CAISSON_ASSIGN(const std::string text, ReadSmallFile(own_map));
  std::istringstream lines(text);
  std::string map;
  bool has_nobody = false;
  unsigned long inside = 0;
  unsigned long outside = 0;
  unsigned long count = 0;
  while (lines >> inside >> outside >> count) {
    const std::string id = std::to_string(inside);
    has_nobody |= inside <= kNobody && kNobody - inside < count;
    map.append(id).append(" ").append(id).append(" ").append(std::to_string(count)).append("\n");
  }
  if (!has_nobody) return SyscallError("find id 65534 in " + own_map, EINVAL);
  return map;
}

Result<void> WriteWhole(const std::string& proc) {
  CAISSON_ASSIGN(const std::string uids, IdentityMap("/proc/self/uid_map"));
  CAISSON_ASSIGN(const std::string gids, IdentityMap("/proc/self/gid_map"));
  CAISSON_TRY(WriteSmallFile(proc + "/uid_map", uids));
  return WriteSmallFile(proc + "/gid_map", gids);
}

Result<void> WriteSelf(const std::string& proc, unsigned self_inside) {
  const std::string inside = std::to_string(self_inside) + " ";
  // The kernel wants this before an unprivileged gid_map (CVE-2014-8989).
  CAISSON_TRY(WriteSmallFile(proc + "/setgroups", "deny"));
  CAISSON_TRY(WriteSmallFile(proc + "/uid_map", inside + std::to_string(::geteuid()) + " 1\n"));
  return WriteSmallFile(proc + "/gid_map", inside + std::to_string(::getegid()) + " 1\n");
}

}  // namespace

Result<IdMap> WriteIdMaps(pid_t child, unsigned self_inside) {
  const std::string proc = "/proc/" + std::to_string(child);
  // A map is written once or fails as a whole, so the second try finds it empty.
  if (::geteuid() == 0 && WriteWhole(proc)) return IdMap::kWhole;
  CAISSON_TRY(WriteSelf(proc, self_inside));
  return IdMap::kSelf;
}

Result<UniqueFd> MakeIdMap(std::uint32_t first, std::uint32_t count) {
  CAISSON_ASSIGN(CloneResult clone, CloneWithNamespaces(CLONE_NEWUSER));
  if (clone.pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  const ChildProcess child(clone.pid, std::move(clone.pidfd));  // goes with this call
  const std::string proc = "/proc/" + std::to_string(child.pid());
  const std::string map = "0 " + std::to_string(first) + " " + std::to_string(count) + "\n";
  CAISSON_TRY(WriteSmallFile(proc + "/uid_map", map));
  CAISSON_TRY(WriteSmallFile(proc + "/gid_map", map));
  return OpenFile(proc + "/ns/user", O_RDONLY);
}

}  // namespace caisson::os
