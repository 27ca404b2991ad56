// SPDX-License-Identifier: Apache-2.0
#include "jail/interpreter_syscalls.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string_view>
#include <utility>

namespace caisson::jail {
namespace {

constexpr std::uint64_t kLow32 = 0xffffffff;

// What pthread_create asks of clone(2), and nothing else.
constexpr std::uint64_t kThreadFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                                       CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                                       CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;

os::ArgumentCheck Is(unsigned index, std::uint64_t value) {
  return {.index = index, .mask = kLow32, .value = value};
}
os::ArgumentCheck OwnFd(unsigned index) {
  return {.index = index, .mask = kLow32 & ~std::uint64_t{kFirstHostFd - 1}, .value = 0};
}

using Rules = std::vector<os::SyscallRule>;

Rules DescriptorCalls() {
  return {
      {"read", "files and the job"},
      {"pread64", "files"},
      {"readv", "files"},
      {"preadv", "files"},
      {"write", "files and standard streams, never the channel", {OwnFd(0)}},
      {"pwrite64", "files"},
      {"writev", "messages on the channel; files"},
      {"pwritev", "files"},
      {"sendfile", "shutil copies files", {OwnFd(0)}},
      {"copy_file_range", "shutil copies files", {OwnFd(2)}},
      {"lseek", "files"},
      {"close", "files"},
      {"close_range", "files", {OwnFd(1)}},
      {"dup", "descriptors of the script", {OwnFd(0)}},
      {"dup2", "descriptors of the script", {OwnFd(0)}},
      {"dup3", "descriptors of the script", {OwnFd(0)}},
      {"fcntl", "close-on-exec, copies and locks of own descriptors", {OwnFd(0)}},
      {"flock", "locks on files"},
      {"ioctl", "isatty", {Is(1, 0x5401)}},
      {"ioctl", "close-on-exec", {Is(1, 0x5451)}},
      {"ioctl", "close-on-exec", {Is(1, 0x5450)}},
      {"ioctl", "whether a file is a terminal is all that Python asks", {}, ENOTTY},
      {"pipe2", "wake-up pipes between threads"},
      {"pipe", "wake-up pipes between threads"},
      {"poll", "waiting for pipes"},
      {"ppoll", "waiting for pipes"},
      {"select", "time.sleep of older interpreters; waiting for pipes"},
      {"pselect6", "the same"},
      {"epoll_create1", "event loops"},
      {"epoll_ctl", "event loops"},
      {"epoll_wait", "event loops"},
      {"epoll_pwait", "event loops"},
      {"eventfd2", "event loops"},
      {"socketpair",
       "the wake-up pair of event loops; streams of this kind lead nowhere else",
       {Is(0, AF_UNIX), {.index = 1, .mask = 0xf, .value = SOCK_STREAM}}},
      {"recvfrom", "the wake-up pair of event loops"},
      {"sendto",
       "the same; without an address",
       {OwnFd(0), {.index = 4, .mask = ~0ull, .value = 0}}},
  };
}

Rules FileCalls() {
  return {
      {"openat", "files"},
      {"open", "files"},
      {"openat2", "refused so that callers take openat", {}, ENOSYS},
      {"creat", "files"},
      {"stat", "files"},
      {"fstat", "files"},
      {"lstat", "files"},
      {"newfstatat", "files"},
      {"statx", "files"},
      {"statfs", "room on the disk"},
      {"fstatfs", "room on the disk"},
      {"access", "files"},
      {"faccessat", "files"},
      {"faccessat2", "files"},
      {"getdents64", "directories"},
      {"getcwd", "directories"},
      {"chdir", "directories"},
      {"fchdir", "directories"},
      {"mkdir", "directories"},
      {"mkdirat", "directories"},
      {"rmdir", "directories"},
      {"unlink", "temporary files"},
      {"unlinkat", "temporary files"},
      {"rename", "files"},
      {"renameat", "files"},
      {"renameat2", "files"},
      {"link", "files"},
      {"linkat", "files"},
      {"symlink", "files"},
      {"symlinkat", "files"},
      {"readlink", "links"},
      {"readlinkat", "links"},
      {"chmod", "temporary files are made private"},
      {"fchmod", "temporary files are made private"},
      {"fchmodat", "temporary files are made private"},
      {"utimensat", "shutil keeps times"},
      {"umask", "files"},
      {"truncate", "files"},
      {"ftruncate", "files"},
      {"fallocate", "files"},
      {"fsync", "files"},
      {"fdatasync", "files"},
      {"fadvise64", "files"},
      {"readahead", "files"},
      {"getxattr", "shutil asks for attributes", {}, ENOTSUP},
      {"lgetxattr", "shutil asks for attributes", {}, ENOTSUP},
      {"listxattr", "shutil asks for attributes", {}, ENOTSUP},
      {"llistxattr", "shutil asks for attributes", {}, ENOTSUP},
      {"memfd_create", "buffers of libraries"},
  };
}

Rules MemoryCalls() {
  return {
      {"mmap", "memory, and libraries that are imported later"},
      {"mprotect", "the same"},
      {"munmap", "memory is given back"},
      {"mremap", "realloc of large blocks"},
      {"madvise", "memory is given back"},
      {"msync", "numpy.memmap"},
      {"mincore", "libraries ask whether memory is mapped"},
      {"brk", "the heap"},
      {"membarrier", "libraries' own locks"},
      {"get_mempolicy", "libraries ask for memory nodes", {}, ENOSYS},
      {"mbind", "libraries place memory", {}, ENOSYS},
  };
}

Rules ThreadCalls() {
  return {
      {"futex", "locks"},
      {"futex_waitv", "locks", {}, ENOSYS},
      {"clone", "threads, and never a process or a namespace", {Is(0, kThreadFlags)}},
      // Its flags are in memory, where a filter cannot look; libc then takes clone.
      {"clone3", "refused so that libc takes clone", {}, ENOSYS},
      {"set_robust_list", "a new thread registers its locks"},
      {"get_robust_list", "libraries ask for it", {}, ENOSYS},
      {"set_tid_address", "libc"},
      {"rseq", "a new thread registers its restartable sequences"},
      {"prctl", "a new thread takes a name", {Is(0, PR_SET_NAME)}},
      {"prctl", "libraries read it", {Is(0, PR_GET_NAME)}},
      {"prctl", "libraries name their memory", {Is(0, 0x53564d41)}},
      {"sched_getaffinity", "the number of processors"},
      {"sched_setaffinity", "libraries pin their threads"},
      {"sched_yield", "locks that spin"},
      {"sched_getparam", "libc copies attributes of threads"},
      {"sched_getscheduler", "libc copies attributes of threads"},
      {"getpriority", "libraries read it"},
      {"getcpu", "libraries read it"},
      {"getpid", "os.getpid"},
      {"getppid", "os.getppid"},
      {"gettid", "threads"},
      {"getpgrp", "libraries read it"},
      {"getpgid", "libraries read it"},
      {"getsid", "libraries read it"},
      {"getuid", "os.getuid"},
      {"geteuid", "os.geteuid"},
      {"getgid", "os.getgid"},
      {"getegid", "os.getegid"},
      {"getresuid", "os.getresuid"},
      {"getresgid", "os.getresgid"},
      {"getgroups", "os.getgroups"},
      {"getrusage", "time of threads and the process"},
      {"times", "os.times"},
      {"sysinfo", "libraries ask how much memory there is"},
      {"uname", "platform"},
      {"getrlimit", "libc asks for the stack's limit"},
      {"setrlimit", "lowering; the kernel lets nobody raise them here"},
      {"prlimit64", "the same, of this process alone", {Is(0, 0)}},
      {"exit", "a thread ends"},
      {"exit_group", "the process ends"},
      // A call is process 1 of its own namespace.
      {"kill", "to itself", {Is(0, 1)}},
      {"tgkill", "to its own threads", {Is(0, 1)}},
      {"tkill", "refused so that libc takes tgkill", {}, ENOSYS},
  };
}

Rules SignalAndTimeCalls() {
  return {
      {"rt_sigreturn", "return from handlers"},
      {"rt_sigaction", "handlers"},
      {"rt_sigprocmask", "masks"},
      {"rt_sigpending", "masks"},
      {"rt_sigtimedwait", "waiting for signals"},
      {"rt_sigsuspend", "waiting for signals"},
      {"signalfd4", "waiting for signals"},
      {"sigaltstack", "faulthandler"},
      {"pause", "waiting for signals"},
      {"alarm", "timers of the process"},
      {"setitimer", "timers of the process"},
      {"getitimer", "timers of the process"},
      {"timerfd_create", "timers"},
      {"timerfd_settime", "timers"},
      {"timerfd_gettime", "timers"},
      {"restart_syscall", "the kernel's own, after a stop"},
      {"clock_gettime", "time"},
      {"clock_getres", "time"},
      {"gettimeofday", "time"},
      {"time", "time"},
      {"clock_nanosleep", "sleep"},
      {"nanosleep", "sleep"},
      {"getrandom", "seeds"},
      {"arch_prctl", "libc reads features of the processor", {Is(0, 0x3001)}},
  };
}

Rules ProcessCalls() {
  return {
      {"clone", "fork", {Is(0, CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | SIGCHLD)}},
      {"clone", "posix_spawn", {Is(0, CLONE_VM | CLONE_VFORK | SIGCHLD)}},
      {"fork", "fork"},
      {"vfork", "fork"},
      {"execve", "programs"},
      {"wait4", "children end"},
      {"waitid", "children end"},
      {"setsid", "children"},
      {"setpgid", "children"},
      {"kill", "children; none but those of this call can be seen"},
      {"tgkill", "children abort"},
      {"pidfd_open", "children"},
      {"pidfd_send_signal", "children"},
      {"arch_prctl", "a program starts"},
      {"fcntl", "a program starts"},
  };
}

Rules ChildSetUpCalls() {
  return {
      {"execve", "the interpreter itself"},
      {"arch_prctl", "a program starts"},
      {"prctl", "a child's walls"},
      {"fcntl", "a child's descriptors"},
      {"dup3", "a child's descriptors"},
      {"close_range", "a child's descriptors"},
      {"write", "a child's descriptors"},
      {"clone3", "a child in namespaces of its own"},
      {"mount", "a child's own /tmp and /proc"},
      {"sethostname", "a child's walls"},
      {"prlimit64", "a child's walls"},
      {"capset", "a child's walls"},
      {"capget", "a child's walls"},
      {"seccomp", "a child's walls"},
      {"landlock_create_ruleset", "a child's walls"},
      {"landlock_add_rule", "a child's walls"},
      {"landlock_restrict_self", "a child's walls"},
      {"setsid", "a child's walls"},
      {"process_madvise", "a child copies what every script writes to"},
      {"recvmsg", "calls come in with their descriptors"},
      {"sendmsg", "what became of a call"},
      {"wait4", "calls end"},
      {"kill", "a call that cannot be served is ended"},
      {"tgkill", "abort"},
  };
}

Rules ContainerSetUpCalls() {
  return {
      {"execve", "the interpreter itself"},
      {"arch_prctl", "a program starts"},
      {"prctl", "the harness looks at the walls and loads the script's filter"},
      {"seccomp", "the same"},
      {"fcntl", "the harness places its descriptors"},
      {"dup", "the harness places its descriptors"},
      {"dup2", "the harness places its descriptors"},
      {"dup3", "the harness places its descriptors"},
      {"close_range", "the harness places its descriptors"},
      {"write", "the runtime's last words before the interpreter starts"},
      {"prlimit64", "the harness lowers limits"},
      {"tgkill", "threads of the runtime, which is not process 1 under every runtime"},
  };
}

Rules InitCalls() {
  return {
      {"rt_sigtimedwait", "it waits for its child"},
      {"kill", "it passes signals on"},
      {"clone", "threads, and never a process or a namespace", {Is(0, kThreadFlags)}},
  };
}

Rules Join(std::initializer_list<Rules> parts) {
  Rules rules;
  for (const Rules& part : parts) rules.insert(rules.end(), part.begin(), part.end());
  return rules;
}

// What is refused mildly to a script must be allowed where `more` needs it.
Rules Widen(Rules rules, const Rules& more) {
  std::erase_if(rules, [&more](const os::SyscallRule& rule) {
    return std::ranges::any_of(more, [&rule](const os::SyscallRule& other) {
      return std::string_view(rule.name) == other.name;
    });
  });
  rules.insert(rules.end(), more.begin(), more.end());
  return rules;
}

}  // namespace

std::vector<os::SyscallRule> ScriptSyscalls(const std::optional<AllowProcesses>& processes) {
  Rules rules =
      Join({DescriptorCalls(), FileCalls(), MemoryCalls(), ThreadCalls(), SignalAndTimeCalls()});
  if (processes) rules = Join({std::move(rules), ProcessCalls()});
  return rules;
}

std::vector<os::SyscallRule> ZygoteSyscalls(const std::optional<AllowProcesses>& processes) {
  return Widen(ScriptSyscalls(processes), ChildSetUpCalls());
}

std::vector<os::SyscallRule> ContainerSyscalls(const std::optional<AllowProcesses>& processes,
                                               bool with_init) {
  Rules more = ContainerSetUpCalls();
  if (with_init) more = Join({std::move(more), ProcessCalls(), InitCalls()});
  return Widen(ScriptSyscalls(processes), more);
}

}  // namespace caisson::jail
