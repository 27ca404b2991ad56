// SPDX-License-Identifier: Apache-2.0
#include "machine/firecracker/walls.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "egress/network.h"
#include "machine/firecracker/jail.h"
#include "machine/microvm/syscalls.h"
#include "machine/microvm/wall_parts.h"
#include "os/argument_pointers.h"
#include "os/seccomp.h"

namespace caisson::machine::firecracker {
namespace {

using microvm::GiveUp;
using microvm::Must;
using microvm::Plan;
using microvm::RootMaker;

// Beside the program itself, of which the jailer makes a copy.
constexpr off_t kJailBytes = 8 << 20;

// What a template has in place of a network: a tap that leads nowhere.
void MakeTap(uid_t owner) {
  const int tap = ::open("/dev/net/tun", O_RDWR | O_CLOEXEC);
  Must(tap >= 0, "open /dev/net/tun");
  ifreq request{};
  std::strncpy(request.ifr_name, egress::kNamedTap, sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  Must(::ioctl(tap, TUNSETIFF, &request) == 0 && ::ioctl(tap, TUNSETPERSIST, 1) == 0 &&
           ::ioctl(tap, TUNSETOWNER, static_cast<unsigned long>(owner)) == 0,
       "make a tap");
  ::close(tap);
}

// Nothing of it is on the host's disk, and it goes with its processes.
void FillJail(const Plan& plan) {
  Must(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "make mounts private");
  struct stat program{};
  Must(::stat(plan.firecracker.c_str(), &program) == 0, "find " + plan.firecracker);
  const std::string options =
      "mode=755,size=" + std::to_string((program.st_size + kJailBytes) >> 10) + "k";
  Must(::mount("tmpfs", plan.scratch.c_str(), "tmpfs", MS_NOSUID, options.c_str()) == 0,
       "mount a jail");
  const std::string jail = JailOf(plan);
  RootMaker(plan.scratch).MakeParents(jail.substr(plan.scratch.size()) + "/");
  RootMaker root(jail);
  root.Show(plan.boot, microvm::kInsideBoot, false);
  root.Show(plan.image, microvm::kInsideImage, false);
  root.Show(plan.own, microvm::kInsideOwn, true);
  if (!plan.base.empty()) root.Show(plan.base, microvm::kInsideBase, false);
}

// Its mounts are its own from the start: what we do with ours next is not for it.
Jailer StartJailer(const Plan& plan) {
  std::array<int, 2> words{};
  Must(::pipe2(words.data(), O_CLOEXEC) == 0, "make a pipe");
  std::vector<std::string> command = JailerCommand(plan);
  const std::vector<char*> arguments = os::ArgumentPointers(command);
  std::array<char*, 1> environment = {nullptr};
  const auto pid = static_cast<pid_t>(
      ::syscall(SYS_clone, CLONE_NEWNS | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  Must(pid >= 0, "fork");
  if (pid == 0) {
    ::setsid();
    ::dup2(words[1], 1);
    ::dup2(words[1], 2);
    ::syscall(SYS_close_range, 3, ~0U, 0);
    ::execve(arguments[0], arguments.data(), environment.data());
    std::perror("execute the jailer");
    ::_exit(127);
  }
  ::close(words[1]);
  return {.pid = pid, .words = os::UniqueFd(words[0])};
}

void EnterJail(const Plan& plan) {
  const std::string jail = JailOf(plan);
  Must(::mount(jail.c_str(), jail.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0,
       "bind the jail");
  Must(::chdir(jail.c_str()) == 0, "enter the jail");
  microvm::EnterRoot();
}

// What stands beside it starts no program and has no device; it connects to Firecracker's sockets.
std::vector<os::SyscallRule> KeeperSyscalls() {
  constexpr std::array<std::string_view, 8> kNotNeeded = {
      "execve",  "execveat",         "vfork",        "ioctl",
      "seccomp", "process_vm_readv", "memfd_create", "kill"};
  std::vector<os::SyscallRule> rules = microvm::VmSyscalls();
  std::erase_if(rules, [&](const os::SyscallRule& rule) {
    return std::ranges::find(kNotNeeded, std::string_view(rule.name)) != kNotNeeded.end();
  });
  rules.push_back(
      {"socket", "Firecracker's sockets", {{.index = 0, .mask = 0xffffffff, .value = AF_UNIX}}, 0});
  rules.push_back({"connect", "Firecracker's sockets", {}, 0});
  return rules;
}

}  // namespace

Jailer EnterWalls(const Plan& plan) {
  auto filter = os::BuildFilter(KeeperSyscalls(), EPERM);
  if (!filter) GiveUp(filter.error().message, EPERM);
  microvm::JoinGroups(plan.tasks);
  Must(::unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP |
                 CLONE_NEWPID) == 0,
       "make namespaces");
  if (plan.network && plan.shares_memory) MakeTap(plan.uid);
  FillJail(plan);
  Jailer jailer;
  microvm::ForkBehindWalls([&] {
    jailer = StartJailer(plan);
    EnterJail(plan);
    microvm::LoseRights(plan.uid, false);
    microvm::LoadFilter(*filter);
  });
  return jailer;
}

}  // namespace caisson::machine::firecracker
