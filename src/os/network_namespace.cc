// SPDX-License-Identifier: Apache-2.0
#include "os/network_namespace.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

#include "os/syscall_error.h"

#ifndef NSFS_MAGIC
#define NSFS_MAGIC 0x6e736673
#endif

namespace caisson::os {
namespace {

constexpr const char* kOwn = "/proc/thread-self/ns/net";

Result<void> OnThread(const std::function<Result<void>()>& work) {
  Result<void> result;
  try {
    std::thread([&] { result = work(); }).join();
  } catch (const std::system_error& error) {
    return SyscallError("start a thread for a network namespace", error.code().value());
  }
  return result;
}

Result<void> RaiseLoopback() {
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return SyscallError("open a socket in a new network namespace");
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(fd.get(), SIOCSIFFLAGS, &request) != 0) return SyscallError("set lo up");
  return {};
}

}  // namespace

Result<void> InNetworkNamespace(int namespace_fd, const std::function<Result<void>()>& work) {
  return OnThread([&]() -> Result<void> {
    if (::setns(namespace_fd, CLONE_NEWNET) != 0) return SyscallError("enter a network namespace");
    return work();
  });
}

Result<UniqueFd> MakeNetworkNamespace(const std::string& path,
                                      const std::function<Result<void>()>& prepare) {
  const UniqueFd place(::open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400));
  if (!place.valid()) return SyscallError("make " + path);
  UniqueFd made;
  const auto result = OnThread([&]() -> Result<void> {
    if (::unshare(CLONE_NEWNET) != 0) return SyscallError("make a network namespace");
    CAISSON_TRY(RaiseLoopback());
    CAISSON_TRY(prepare());
    CAISSON_ASSIGN(made, OpenFile(kOwn, O_RDONLY | O_CLOEXEC));
    if (::mount(kOwn, path.c_str(), nullptr, MS_BIND, nullptr) != 0) {
      return SyscallError("mount a network namespace on " + path);
    }
    return {};
  });
  if (!result) {
    ::unlink(path.c_str());
    return Fail(result.error());
  }
  return made;
}

Result<UniqueFd> OpenNetworkNamespace(const std::string& path) {
  CAISSON_ASSIGN(UniqueFd fd, OpenFile(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct statfs info{};
  if (::fstatfs(fd.get(), &info) != 0) return SyscallError("stat " + path);
  if (info.f_type != NSFS_MAGIC) {
    return SyscallError("open the network namespace at " + path + ": none is mounted there",
                        ENOENT);
  }
  return fd;
}

Result<void> DropNetworkNamespace(const std::string& path) {
  while (::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) {
  }
  if (errno != EINVAL && errno != ENOENT) return SyscallError("unmount " + path);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return SyscallError("remove " + path);
  return {};
}

}  // namespace caisson::os
