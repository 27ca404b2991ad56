// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/walls.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "machine/microvm/syscalls.h"
#include "machine/microvm/wall_parts.h"
#include "os/seccomp.h"

namespace caisson::machine::microvm {
namespace {

void MakeRoot(const Plan& plan) {
  Must(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "make mounts private");
  Must(::mount("tmpfs", plan.scratch.c_str(), "tmpfs", MS_NOSUID, "mode=755,size=1m") == 0,
       "mount a root");
  RootMaker root(plan.scratch);
  for (const char* path : {"/usr/lib", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache",
                           "/usr/share/qemu", "/usr/share/seabios"}) {
    root.ShowSystem(path);
  }
  root.Show(plan.qemu, plan.qemu, false);
  root.Show(plan.boot, kInsideBoot, false);
  if (!plan.trial) {
    root.Show(plan.preload, kInsidePreload, false);
    root.Show(plan.image, kInsideImage, false);
    root.Show(plan.own, kInsideOwn, true);
  }
  if (!plan.base.empty()) root.Show(plan.base, kInsideBase, false);
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/urandom"}) {
    root.Show(device, device, true);
  }
  if (plan.accelerator == Accelerator::kKvm) root.Device("/dev/kvm", plan.uid);
  // A template's memory is here until it is saved.
  root.Tmpfs("/run", "mode=700,uid=" + std::to_string(plan.uid) +
                         ",size=" + std::to_string((plan.ram_bytes >> 10) + 4096) + "k");
  root.Tmpfs("/tmp", "mode=700,size=1m,uid=" + std::to_string(plan.uid));
  Must(::mkdir((plan.scratch + "/proc").c_str(), 0755) == 0, "make /proc");
  Must(::chdir(plan.scratch.c_str()) == 0, "enter the root");
}

void MakeTap() {
  const int tap = ::open("/dev/net/tun", O_RDWR | O_CLOEXEC);
  Must(tap >= 0, "open /dev/net/tun");
  ifreq request{};
  std::strncpy(request.ifr_name, "tap", sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  Must(::ioctl(tap, TUNSETIFF, &request) == 0, "make a tap");
  Must(::dup2(tap, kTapFd) == kTapFd, "place a tap");
  ::close(tap);
}

}  // namespace

void EnterWalls(const Plan& plan) {
  auto filter = os::BuildFilter(VmSyscalls(), EPERM);
  if (!filter) GiveUp(filter.error().message, EPERM);
  JoinGroups(plan.tasks);
  Must(::unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP |
                 CLONE_NEWPID) == 0,
       "make namespaces");
  // A template has a network that leads nowhere.
  if (plan.network && plan.shares_memory) MakeTap();
  MakeRoot(plan);
  ForkBehindWalls([&] {
    Must(::mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0,
         "mount /proc");
    EnterRoot();
    LimitFiles(plan.max_file_bytes);
    LoseRights(plan.uid, true);
    LoadFilter(*filter);
  });
}

}  // namespace caisson::machine::microvm
