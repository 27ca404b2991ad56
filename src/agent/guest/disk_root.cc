// SPDX-License-Identifier: Apache-2.0
// The root file system of a virtual machine: its disk over its image. Mounted by the running agent,
// so that what was saved before goes on with any disk, of any size.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "agent/guest/computer.h"
#include "os/fd.h"

namespace caisson::agent::guest {
namespace {

constexpr const char* kDisk = "/disk";
constexpr const char* kRoot = "/root";
// The kernel is told of another size by an interrupt, which it works on when it comes to it.
constexpr int kSizeSteps = 5'000;  // of a millisecond

std::unexpected<Failure> Failed(const char* what) {
  return Fail(FailureKind::kInternal, what, errno);
}

bool MakeDirectory(const std::string& path) {
  return ::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST;
}

Attempt<void> Mount(const char* what, const std::string& place, const char* type,
                    unsigned long flags, const char* options = nullptr) {
  if (MakeDirectory(place) && ::mount(what, place.c_str(), type, flags, options) == 0) return {};
  return Failed(("mount " + place).c_str());
}

Attempt<void> AwaitSize(std::uint64_t bytes) {
  const os::UniqueFd device(::open(kDiskDevice, O_RDONLY | O_CLOEXEC));
  std::uint64_t has = 0;
  for (int step = 0; step < kSizeSteps; ++step) {
    if (!device.valid() || ::ioctl(device.get(), BLKGETSIZE64, &has) != 0) break;
    if (has == bytes) return {};
    ::usleep(1'000);
  }
  return Failed("find the disk in its size");
}

// What is on the disk is its owner's: nothing there is followed or opened.
Attempt<void> MountLayers() {
  constexpr unsigned long kFlags = MS_NOATIME | MS_NODEV;
  // Inode tables that were never written are zero in a sparse file. The journal is written every
  // two seconds, not five: a file has its size by it.
  auto done =
      Mount(kDiskDevice, kDisk, "ext4", kFlags, "discard,noinit_itable,commit=2,errors=remount-ro");
  if (!done) return done;
  if (!MakeDirectory(std::string(kDisk) + "/upper") ||
      !MakeDirectory(std::string(kDisk) + "/work")) {
    return Failed("make the layers of the disk");
  }
  return Mount("overlay", kRoot, "overlay", MS_NODEV,
               "lowerdir=/image,upperdir=/disk/upper,workdir=/disk/work");
}

// A directory of the root file system that is one, and no link to elsewhere.
Attempt<void> MakePlace(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) (void)::unlink(path.c_str());
  if (!MakeDirectory(path)) return Failed(("make " + path).c_str());
  return {};
}

Attempt<void> Furnish() {
  const std::string root = kRoot;
  for (const char* place : {"/dev", "/proc", "/sys", "/run", "/tmp"}) {
    if (auto made = MakePlace(root + place); !made) return made;
  }
  for (const char* place : {"/dev", "/proc", "/sys"}) {
    if (::mount(place, (root + place).c_str(), nullptr, MS_MOVE, nullptr) != 0) {
      return Failed("move /dev, /proc and /sys");
    }
  }
  auto done = Mount("run", root + "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64m");
  if (!done) return done;
  // Grown and synced here.
  const std::string place = root + kDiskPlace;
  if (!MakeDirectory(root + "/run/caisson") || !MakeDirectory(place) ||
      ::mount(kDisk, place.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
      ::chmod((root + "/run/caisson").c_str(), 0700) != 0) {
    return Failed("bind the disk");
  }
  done = Mount("devpts", root + "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
               "ptmxmode=666,mode=620,gid=5");
  if (!done) return done;
  done = Mount("shm", root + "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
  if (!done) return done;
  done = Mount("mqueue", root + "/dev/mqueue", "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC);
  if (!done) return done;
  (void)!::symlink("/proc/self/fd", (root + "/dev/fd").c_str());
  (void)!::symlink("/proc/self/fd/0", (root + "/dev/stdin").c_str());
  (void)!::symlink("/proc/self/fd/1", (root + "/dev/stdout").c_str());
  (void)!::symlink("/proc/self/fd/2", (root + "/dev/stderr").c_str());
  return {};
}

// Of every process that is there: the agent, and what starts its commands.
Attempt<void> EnterRoot() {
  if (::chdir(kRoot) != 0 || ::syscall(SYS_pivot_root, ".", ".") != 0 ||
      ::umount2(".", MNT_DETACH) != 0 || ::chdir("/") != 0) {
    return Failed("enter the root");
  }
  return {};
}

}  // namespace

Attempt<void> MountDisk(const MountDiskRequest& request) {
  if (auto found = AwaitSize(request.bytes); !found) return found;
  if (auto mounted = MountLayers(); !mounted) return mounted;
  if (auto made = Furnish(); !made) return made;
  if (auto entered = EnterRoot(); !entered) return entered;
  // As the kernel has it by itself: modules are the guest's own affair.
  (void)os::WriteSmallFile(kModuleLoader, "/sbin/modprobe\n");
  return {};
}

}  // namespace caisson::agent::guest
