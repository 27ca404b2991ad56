// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/syscalls.h"

#include <linux/kvm.h>
#include <linux/sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <initializer_list>

namespace caisson::machine::microvm {
namespace {

using Rules = std::vector<os::SyscallRule>;

void Allow(Rules& rules, const char* reason, std::initializer_list<const char*> names) {
  for (const char* name : names) rules.push_back({name, reason, {}, 0});
}

os::ArgumentCheck Is(unsigned index, std::uint64_t value) {
  return {.index = index, .mask = 0xffffffff, .value = value};
}

}  // namespace

std::vector<os::SyscallRule> VmSyscalls() {
  Rules rules;
  Allow(rules, "descriptors",
        {"read",
         "pread64",
         "readv",
         "preadv",
         "preadv2",
         "write",
         "pwrite64",
         "writev",
         "pwritev",
         "pwritev2",
         "lseek",
         "close",
         "close_range",
         "dup",
         "dup2",
         "dup3",
         "fcntl",
         "pipe2",
         "poll",
         "ppoll",
         "select",
         "pselect6",
         "epoll_create1",
         "epoll_ctl",
         "epoll_wait",
         "epoll_pwait",
         "epoll_pwait2",
         "eventfd2",
         "signalfd4",
         "timerfd_create",
         "timerfd_settime",
         "timerfd_gettime",
         "copy_file_range",
         "flock"});
  Allow(rules, "the machine's own files",
        {"open",     "openat",     "stat",      "lstat",      "fstat",          "newfstatat",
         "statx",    "statfs",     "fstatfs",   "access",     "faccessat",      "faccessat2",
         "readlink", "readlinkat", "getcwd",    "getdents64", "unlink",         "unlinkat",
         "rename",   "renameat",   "renameat2", "mkdir",      "ftruncate",      "fallocate",
         "fsync",    "fdatasync",  "fadvise64", "umask",      "sync_file_range"});
  Allow(rules, "memory",
        {"mmap", "munmap", "mprotect", "mremap", "madvise", "brk", "mlock", "msync", "mincore",
         "memfd_create", "membarrier", "process_vm_readv"});
  Allow(rules, "threads and their times",
        {"futex",
         "set_robust_list",
         "get_robust_list",
         "rseq",
         "set_tid_address",
         "gettid",
         "sched_yield",
         "sched_getaffinity",
         "sched_setaffinity",
         "sched_getparam",
         "sched_getscheduler",
         "getpriority",
         "nanosleep",
         "clock_nanosleep",
         "clock_gettime",
         "clock_getres",
         "gettimeofday",
         "time",
         "times",
         "restart_syscall",
         "arch_prctl",
         "prctl",
         "exit",
         "exit_group"});
  Allow(rules, "signals",
        {"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait",
         "rt_sigsuspend", "sigaltstack", "kill", "tkill", "tgkill", "pidfd_open",
         "pidfd_send_signal"});
  Allow(rules, "what they are",
        {"getpid",    "getppid",   "getuid",    "geteuid",   "getgid",    "getegid", "getresuid",
         "getresgid", "getgroups", "getpgrp",   "getpgid",   "getsid",    "setsid",  "uname",
         "sysinfo",   "getrlimit", "prlimit64", "getrusage", "getrandom", "getcpu",  "capget"});
  Allow(rules, "the sockets that they are given",
        {"accept4", "sendmsg", "recvmsg", "sendto", "recvfrom", "shutdown", "getsockopt",
         "setsockopt", "getsockname", "getpeername"});
  rules.push_back({"socketpair", "between the two of them", {Is(0, AF_UNIX)}, 0});
  // The numbers differ by device; what is open says which there are: the tap, KVM, files.
  Allow(rules, "the tap and KVM", {"ioctl"});
  Allow(rules, "what QEMU denies itself in addition", {"seccomp"});
  Allow(rules, "starting QEMU", {"execve", "execveat", "wait4", "waitid", "vfork"});
  constexpr std::uint64_t kNamespaces = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                        CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP;
  rules.push_back({"clone",
                   "threads, and QEMU, without namespaces",
                   {{.index = 0, .mask = kNamespaces, .value = 0}},
                   0});
  // Its flags cannot be looked at; libc then takes clone.
  rules.push_back({"clone3", "threads", {}, ENOSYS});
  return rules;
}

}  // namespace caisson::machine::microvm
