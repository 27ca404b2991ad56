// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/syscalls.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace caisson::egress::gate {
namespace {

constexpr std::uint64_t kLow32 = 0xffffffff;

os::ArgumentCheck Equals(unsigned index, std::uint64_t value) {
  return {.index = index, .mask = kLow32, .value = value & kLow32};
}
// The type of a socket, whatever its flags.
os::ArgumentCheck TypeIs(int type) {
  return {.index = 1, .mask = 0xf, .value = static_cast<std::uint64_t>(type)};
}

std::vector<os::SyscallRule> NetworkCalls() {
  return {
      {"socket",
       "connections to destinations and resolvers",
       {Equals(0, AF_INET), TypeIs(SOCK_STREAM)}},
      {"socket", "questions to resolvers", {Equals(0, AF_INET), TypeIs(SOCK_DGRAM)}},
      {"connect", "the same; Landlock and the packet filter say where to"},
      {"accept4", "guests, on the sockets that the helper bound"},
      {"getsockopt", "whether a connection was made; where a redirected one was to go"},
      {"setsockopt", "resets, keep-alive, no delay, buffers of fixed size"},
      {"getpeername", "whether a connection was made"},
      {"shutdown", "half-closes are passed on"},
      {"recvfrom", "what guests and destinations send"},
      {"sendto", "the same to the other side"},
      {"recvmsg", "questions with the address that they came to; the helper's messages"},
      {"sendmsg", "answers from that address; messages to the helper"},
      {"splice", "bytes between two sockets"},
      {"pipe2", "the same"},
      {"fcntl", "larger pipes", {Equals(1, F_SETPIPE_SZ)}},
      {"close", "connections end"},
      {"epoll_wait", "the loop"},
      {"epoll_pwait", "the loop, on architectures without epoll_wait"},
      {"epoll_ctl", "the loop"},
  };
}

std::vector<os::SyscallRule> OtherCalls() {
  const os::ArgumentCheck not_executable{.index = 2, .mask = PROT_EXEC, .value = 0};
  const os::ArgumentCheck own_process = Equals(0, static_cast<std::uint64_t>(::getpid()));
  return {
      {"mmap", "the heap", {not_executable}},
      {"mprotect", "the heap", {not_executable}},
      {"munmap", "memory is given back"},
      {"mremap", "realloc of large blocks"},
      {"madvise", "memory is given back"},
      {"brk", "the heap"},
      {"futex", "the library's own locks"},
      {"sched_yield", "locks that spin"},
      {"write", "a library that gives up says why; this is /dev/null", {Equals(0, 2)}},
      {"writev", "a library that gives up says why; this is /dev/null", {Equals(0, 2)}},
      {"getpid", "abort"},
      {"gettid", "abort"},
      {"tgkill", "abort signals itself", {own_process}},
      {"rt_sigaction", "abort restores the default action"},
      {"rt_sigprocmask", "abort sets its mask"},
      {"rt_sigreturn", "return from a handler"},
      {"restart_syscall", "the kernel's own, after a stop"},
      {"clock_gettime", "timers, where the vDSO cannot answer"},
      {"getrandom", "ids of questions; hash seeds of libraries"},
      {"exit_group", "the gate ends when the helper does"},
  };
}

}  // namespace

std::vector<os::SyscallRule> GateSyscalls() {
  std::vector<os::SyscallRule> rules = NetworkCalls();
  for (os::SyscallRule& rule : OtherCalls()) rules.push_back(std::move(rule));
  return rules;
}

}  // namespace caisson::egress::gate
