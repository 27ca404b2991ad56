// SPDX-License-Identifier: Apache-2.0
// The worker's list of system calls against every number that there is.
#include "jail/syscalls.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <set>
#include <string>

#include "jail/spawn.h"
#include "os/process.h"
#include "os/seccomp.h"

namespace caisson::jail {
namespace {

using namespace std::chrono_literals;

constexpr int kRefused = 6;
constexpr int kWorked = 7;

// The kernel lets the calls of its own probes, uretprobe and uprobe, past every filter. It refuses
// them itself, with an error or SIGILL, to everybody but the code that it has put there for them.
constexpr std::array<int, 2> kPastEveryFilter = {335, 336};

// What call `number` without arguments comes to under the filter, in a child that has no privileges
// over anything: -1 when it cannot be tried.
os::ExitStatus Try(long number) {
  auto clone = os::CloneWithNamespaces(CLONE_NEWUSER | CLONE_NEWUTS);
  if (!clone) return {.code = -1, .signal = 0};
  if (clone->pid == 0) {
    if (!os::InstallAllowList(WorkerSyscalls(kChannelFd))) ::_exit(8);
    ::_exit(::syscall(number, 0, 0, 0, 0, 0, 0) < 0 ? kRefused : kWorked);
  }
  os::ChildProcess child(clone->pid, std::move(clone->pidfd));
  return child.Wait(20s).value_or(os::ExitStatus{.code = -2, .signal = 0});
}

TEST(WorkerSyscalls, NoOtherNumberGetsIntoTheKernel) {
  if (Try(SYS_getpid).code == -1) GTEST_SKIP() << "no user namespaces here";
  ASSERT_EQ(Try(SYS_getpid).code, kWorked) << "one that is allowed";
  std::set<int> allowed;
  for (const os::SyscallRule& rule : WorkerSyscalls(kChannelFd)) {
    allowed.insert(seccomp_syscall_resolve_name(rule.name));
  }
  // Beyond the last number that any kernel has.
  for (int number = 0; number < 512; ++number) {
    if (allowed.contains(number)) continue;
    const os::ExitStatus status = Try(number);
    char* const name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
    const bool refused = std::ranges::count(kPastEveryFilter, number) != 0 &&
                         (status.code == kRefused || status.signal == SIGILL);
    EXPECT_TRUE(status.signal == SIGSYS || refused)
        << number << " (" << (name == nullptr ? "?" : name) << ") " << os::ToText(status);
    std::free(name);
  }
}

}  // namespace
}  // namespace caisson::jail
