// SPDX-License-Identifier: Apache-2.0
#include "os/mount.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "os/syscall_error.h"

namespace caisson::os {
namespace {

constexpr unsigned long kLocked = MS_NOSUID | MS_NODEV | MS_NOEXEC;

// Any directory will do as the place to mount on; these exist on every system, one at least.
Result<const char*> MountTmpfsSomewhere() {
  static constexpr std::array<const char*, 5> kPlaces = {"/tmp", "/proc", "/dev", "/usr", "/etc"};
  int error = 0;
  for (const char* place : kPlaces) {
    if (::mount("caisson", place, "tmpfs", kLocked, "mode=555,size=4k,nr_inodes=2") == 0) {
      return place;
    }
    error = errno;
  }
  return SyscallError("mount an empty tmpfs", error);
}

}  // namespace

Result<std::string> MountNamespaceId() {
  std::array<char, 64> text;
  const ssize_t n = ::readlink("/proc/self/ns/mnt", text.data(), text.size());
  if (n <= 0) return SyscallError("readlink /proc/self/ns/mnt");
  return std::string(text.data(), static_cast<std::size_t>(n));
}

Result<void> EnterEmptyRoot() {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return SyscallError("make mounts private");
  }
  CAISSON_ASSIGN(const char* root, MountTmpfsSomewhere());
  if (::chdir(root) != 0) return SyscallError("chdir to the new root");
  // With both arguments ".", the old root is stacked on the new one, whence it is detached.
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return SyscallError("pivot_root");
  if (::umount2(".", MNT_DETACH) != 0) return SyscallError("detach the old root");
  if (::chdir("/") != 0) return SyscallError("chdir to /");
  if (::mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | kLocked, nullptr) != 0) {
    return SyscallError("make the empty root read-only");
  }
  return {};
}

}  // namespace caisson::os
