// SPDX-License-Identifier: Apache-2.0
#include "jail/seal.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "os/capability.h"
#include "os/every_thread.h"
#include "os/fd.h"
#include "os/landlock.h"
#include "os/mount.h"
#include "os/rlimit.h"
#include "os/syscall_error.h"
#include "os/user_namespace.h"

namespace caisson::jail {
namespace {

// Puts up walls one after another, each by what the ticket says of it.
class Builder {
 public:
  explicit Builder(const SealTicket& ticket) : ticket_(ticket) {}

  // Fails when the wall is mandatory, does not stand and no grant allows that.
  Result<void> Build(Wall wall, const std::function<Result<void>()>& build) {
    if (ticket_.leave_out.Has(wall)) {
      reports_.push_back(Missing(wall, "left out by DangerouslyLeaveOut"));
      return {};
    }
    if (auto built = build(); !built) {
      const std::string& reason = built.error().message;
      if (InfoOf(wall).mandatory && !ticket_.allow_unjailed) return Unavailable(wall, reason);
      reports_.push_back(Missing(wall, reason));
      return {};
    }
    reports_.push_back(Standing(wall));
    return {};
  }

  std::vector<WallReport> Take() { return std::move(reports_); }

 private:
  const SealTicket& ticket_;
  std::vector<WallReport> reports_;
};

// What our user namespace makes of user 0 and of "nobody".
struct Users {
  bool has_nobody = false;
  bool zero_is_root = false;  // of the namespace around ours
};

Result<Users> ReadUsers() {
  CAISSON_ASSIGN(const std::string text, os::ReadSmallFile("/proc/self/uid_map"));
  std::istringstream map(text);
  Users users;
  unsigned long inside = 0;
  unsigned long outside = 0;
  unsigned long count = 0;
  while (map >> inside >> outside >> count) {
    users.has_nobody |= inside <= os::kNobody && os::kNobody - inside < count;
    users.zero_is_root |= inside == 0 && outside == 0;
  }
  return users;
}

// Whether there is another user to become; fails when there is none and we are root.
Result<bool> ChooseUser() {
  CAISSON_ASSIGN(const Users users, ReadUsers());
  if (::geteuid() != 0 || !users.zero_is_root) return false;
  if (users.has_nobody) return true;
  return os::SyscallError("user 65534 is not in /proc/self/uid_map", EINVAL);
}

// What each thread does to itself. Raw system calls: libc would do it to all threads, from one.
struct ThreadSeal {
  bool change_user = false;
  bool clear_capabilities = true;
  int landlock = -1;
};

int SealThread(void* argument) {
  const auto& seal = *static_cast<const ThreadSeal*>(argument);
  if (seal.change_user) {
    const long nobody = os::kNobody;
    if (::syscall(SYS_setgroups, 0, nullptr) != 0 ||
        ::syscall(SYS_setresgid, nobody, nobody, nobody) != 0 ||
        ::syscall(SYS_setresuid, nobody, nobody, nobody) != 0) {
      // Done before: a thread that was started by one that had changed already.
      if (::syscall(SYS_getuid) != nobody) return errno;
    }
  }
  if (seal.clear_capabilities) {
    if (const int error = os::ClearCapabilities()) return error;
  }
  return seal.landlock >= 0 ? os::RestrictThread(seal.landlock) : 0;
}

Result<void> LowerLimits(const SealOptions& options, bool own_user_namespace) {
  const std::pair<int, std::uint64_t> limits[] = {
      {RLIMIT_FSIZE, 0},   {RLIMIT_NOFILE, options.max_open_files},
      {RLIMIT_MEMLOCK, 0}, {RLIMIT_MSGQUEUE, 0},
      {RLIMIT_LOCKS, 0},   {RLIMIT_SIGPENDING, 64},
  };
  for (const auto& [resource, value] : limits) CAISSON_TRY(os::LowerLimit(resource, value));
  // Counted per user and namespace: without our own, "nobody" may have processes elsewhere.
  if (own_user_namespace) CAISSON_TRY(os::LowerLimit(RLIMIT_NPROC, options.max_threads));
  if (options.max_data_bytes != 0) {
    CAISSON_TRY(os::LowerLimit(RLIMIT_DATA, options.max_data_bytes));
  }
  return {};
}

Result<void> CheckDescriptor(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return {};
  const bool writable = (::fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
  const char* what = nullptr;
  if (S_ISDIR(status.st_mode)) what = "a directory";
  if (S_ISSOCK(status.st_mode)) what = "a socket";
  // An unlinked or anonymous file leads nowhere.
  if (S_ISREG(status.st_mode) && writable && status.st_nlink > 0) what = "a writable file";
  if (what == nullptr) return {};
  return os::SyscallError("descriptor " + std::to_string(fd) + " was left open on " + what, EBADF);
}

// What the program has opened must not lead out of the empty root.
Result<void> CheckDescriptors() {
  DIR* directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return os::SyscallError("open /proc/self/fd");
  Result<void> result;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name(entry->d_name);
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    if (fd <= kChannelFd || fd == ::dirfd(directory)) continue;
    if (result = CheckDescriptor(fd); !result) break;
  }
  ::closedir(directory);
  return result;
}

Result<void> CloseStandardStreams() {
  CAISSON_ASSIGN(const os::UniqueFd null, os::OpenFile("/dev/null", O_RDWR));
  for (int fd : {0, 1, 2}) {
    if (::dup2(null.get(), fd) < 0) return os::SyscallError("replace a standard stream");
  }
  return {};
}

Result<void> LeaveFileSystem(const SealTicket& ticket) {
  // Anywhere else this would take the host's root away.
  CAISSON_ASSIGN(const std::string own, os::MountNamespaceId());
  if (!ticket.standing.Has(Wall::kMountNamespace) || own == ticket.outer_mount_namespace) {
    return os::SyscallError("this process has no mount namespace of its own", EPERM);
  }
  return os::EnterEmptyRoot();
}

}  // namespace

Result<std::vector<WallReport>> Harden(const SealTicket& ticket) {
  // To give memory of a second arena back, glibc reads a file of /proc: sealed, that is the end.
  ::mallopt(M_ARENA_MAX, 1);
  Builder builder(ticket);
  CAISSON_TRY(builder.Build(Wall::kNoNewPrivileges, os::SetNoNewPrivileges));
  if (!ticket.leave_out.Has(Wall::kCapabilities)) {
    // Whether this succeeds shows at the end, when the thread's own sets are cleared: without any
    // capability and with no_new_privs, a bounding set means nothing.
    (void)os::LockSecurebits();
    (void)os::EmptyBoundingSet();
  }
  CAISSON_TRY(os::LowerLimit(RLIMIT_CORE, 0));
  ::prctl(PR_SET_DUMPABLE, 0);
  // The heap of a thread opens /proc/sys/vm/overcommit_memory before it gives memory back, and that
  // is death under the filter. The main one, which all threads share then, does not.
  ::mallopt(M_ARENA_MAX, 1);
  return builder.Take();
}

Result<std::vector<WallReport>> Seal(const SealTicket& ticket, const SealOptions& options) {
  Builder builder(ticket);
  const bool own_users = ticket.standing.Has(Wall::kUserNamespace);
  if (!ticket.leave_out.Has(Wall::kCleanStart)) {
    if (auto clean = CheckDescriptors(); !clean) {
      return Unavailable(Wall::kCleanStart, clean.error().message);
    }
    CAISSON_TRY(CloseStandardStreams());
  }

  ThreadSeal seal;
  os::UniqueFd ruleset;
  CAISSON_TRY(builder.Build(Wall::kLandlock, [&]() -> Result<void> {
    CAISSON_ASSIGN(ruleset, os::MakeDenyAllRuleset(options.connect_ports));
    seal.landlock = ruleset.get();
    return {};
  }));
  CAISSON_TRY(builder.Build(Wall::kUnprivilegedUser, [&]() -> Result<void> {
    CAISSON_ASSIGN(seal.change_user, ChooseUser());
    return {};
  }));
  seal.clear_capabilities = !ticket.leave_out.Has(Wall::kCapabilities);
  CAISSON_TRY(os::OnOtherThreads(SealThread, &seal));
  CAISSON_TRY(builder.Build(Wall::kEmptyRoot, [&] { return LeaveFileSystem(ticket); }));
  const int error = SealThread(&seal);
  CAISSON_TRY(builder.Build(Wall::kCapabilities, [&]() -> Result<void> {
    if (error != 0) return os::SyscallError("drop privileges", error);
    return {};
  }));
  CAISSON_TRY(
      builder.Build(Wall::kResourceLimits, [&] { return LowerLimits(options, own_users); }));
  // A change of user has cleared both.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_DUMPABLE, 0);
  ruleset.Reset();
  CAISSON_TRY(
      builder.Build(Wall::kSeccomp, [&] { return os::InstallAllowList(options.syscalls); }));
  return builder.Take();
}

}  // namespace caisson::jail
