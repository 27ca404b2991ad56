// SPDX-License-Identifier: Apache-2.0
#include "jail/syscalls.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace caisson::jail {
namespace {

constexpr std::uint64_t kLow32 = 0xffffffff;

os::ArgumentCheck IsFd(int fd) {
  return {.index = 0, .mask = kLow32, .value = static_cast<std::uint32_t>(fd)};
}

// What pthread_create asks of clone(2), and nothing else; the second flag is older libraries'.
constexpr std::uint64_t kThreadFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                                       CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                                       CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
constexpr std::uint64_t kAnyThreadFlags = kLow32 & ~std::uint64_t{CLONE_DETACHED};

std::vector<os::SyscallRule> ChannelCalls(int channel) {
  return {
      {"read", "requests come in on the channel", {IsFd(channel)}},
      {"recvfrom", "requests come in on the channel", {IsFd(channel)}},
      {"write", "replies go out on the channel", {IsFd(channel)}},
      {"sendto", "replies go out on the channel", {IsFd(channel)}},
      {"writev", "a reply's head and text in one call", {IsFd(channel)}},
      {"write", "a library that gives up says why; this is /dev/null", {IsFd(2)}},
      {"writev", "a library that gives up says why; this is /dev/null", {IsFd(2)}},
      {"close", "an engine lets go of memory images that it evicts"},
  };
}

std::vector<os::SyscallRule> MemoryCalls() {
  const os::ArgumentCheck not_executable{.index = 2, .mask = PROT_EXEC, .value = 0};
  return {
      {"mmap", "memory for instances and the heap; all code is mapped already", {not_executable}},
      {"mprotect", "instances grow; nothing becomes code any more", {not_executable}},
      {"munmap", "memory is given back"},
      {"mremap", "realloc of large blocks"},
      {"madvise", "pages of an ended instance are dropped"},
      {"brk", "the heap"},
  };
}

std::vector<os::SyscallRule> ThreadCalls() {
  const os::ArgumentCheck is_thread{.index = 0, .mask = kAnyThreadFlags, .value = kThreadFlags};
  const os::ArgumentCheck own_process{
      .index = 0, .mask = kLow32, .value = static_cast<std::uint32_t>(::getpid())};
  const os::ArgumentCheck set_name{.index = 0, .mask = kLow32, .value = PR_SET_NAME};
  return {
      {"futex", "locks, and waiting for threads"},
      {"clone", "threads, and never a process or a namespace", {is_thread}},
      // Its flags are in memory, where a filter cannot look; libc then takes clone.
      {"clone3", "refused so that libc takes clone", {}, ENOSYS},
      {"set_robust_list", "a new thread registers its locks"},
      {"rseq", "a new thread registers its restartable sequences"},
      {"prctl", "a new thread takes a name", {set_name}},
      {"sched_getaffinity", "libc counts processors for its memory arenas"},
      {"sched_yield", "locks that spin"},
      {"getpid", "abort"},
      {"gettid", "abort"},
      {"tgkill", "abort signals itself; the first argument is this process", {own_process}},
      {"exit", "a thread ends"},
      {"exit_group", "the process ends when its channel does"},
  };
}

std::vector<os::SyscallRule> SignalAndTimeCalls() {
  return {
      {"rt_sigreturn", "return from the engine's trap handler"},
      {"rt_sigaction", "abort restores the default action"},
      {"rt_sigprocmask", "threads and abort set their masks"},
      {"sigaltstack", "each thread gives its trap handler a stack"},
      {"restart_syscall", "the kernel's own, after a stop"},
      {"clock_gettime", "deadlines, where the vDSO cannot answer"},
      {"gettimeofday", "the same"},
      {"time", "the same"},
      {"clock_nanosleep", "the epoch ticker sleeps"},
      {"nanosleep", "the same"},
      {"getrandom", "hash seeds of libraries"},
  };
}

}  // namespace

std::vector<os::SyscallRule> WorkerSyscalls(int channel) {
  std::vector<os::SyscallRule> rules;
  for (auto part : {ChannelCalls(channel), MemoryCalls(), ThreadCalls(), SignalAndTimeCalls()}) {
    rules.insert(rules.end(), part.begin(), part.end());
  }
  return rules;
}

}  // namespace caisson::jail
