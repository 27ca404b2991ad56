// SPDX-License-Identifier: Apache-2.0
#include "machine/syscalls.h"

#include <linux/netlink.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace caisson::machine {
namespace {

using Rules = std::vector<os::SyscallRule>;

constexpr std::uint64_t kLow32 = 0xffffffff;
// Every flag of clone(2) that makes a namespace; CLONE_NEWTIME's bit is part of the exit signal
// there, and clone(2) knows it not.
constexpr std::uint64_t kNamespaceFlags = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC |
                                          CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |
                                          CLONE_NEWCGROUP;

os::ArgumentCheck Is(unsigned index, std::uint64_t value) {
  return {.index = index, .mask = kLow32, .value = value};
}

void Allow(Rules& rules, const char* reason, std::initializer_list<const char*> names) {
  for (const char* name : names) rules.push_back({name, reason, {}, 0});
}

void AllowFiles(Rules& rules) {
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
         "sendfile",
         "copy_file_range",
         "splice",
         "tee",
         "vmsplice",
         "lseek",
         "close",
         "close_range",
         "dup",
         "dup2",
         "dup3",
         "fcntl",
         "flock",
         "pipe",
         "pipe2",
         "poll",
         "ppoll",
         "select",
         "pselect6",
         "epoll_create",
         "epoll_create1",
         "epoll_ctl",
         "epoll_wait",
         "epoll_pwait",
         "epoll_pwait2",
         "eventfd",
         "eventfd2",
         "signalfd",
         "signalfd4",
         "timerfd_create",
         "timerfd_settime",
         "timerfd_gettime",
         "inotify_init",
         "inotify_init1",
         "inotify_add_watch",
         "inotify_rm_watch",
         "memfd_create"});
  // Its terminals are the machine's own, so that TIOCSTI pushes bytes to nobody else.
  Allow(rules, "terminals, sockets, files", {"ioctl"});
  Allow(rules, "files",
        {"open",      "openat",     "openat2",    "creat",      "stat",     "fstat",
         "lstat",     "newfstatat", "statx",      "statfs",     "fstatfs",  "access",
         "faccessat", "faccessat2", "getdents",   "getdents64", "getcwd",   "chdir",
         "fchdir",    "mkdir",      "mkdirat",    "rmdir",      "unlink",   "unlinkat",
         "rename",    "renameat",   "renameat2",  "link",       "linkat",   "symlink",
         "symlinkat", "readlink",   "readlinkat", "chmod",      "fchmod",   "fchmodat",
         "fchmodat2", "chown",      "fchown",     "lchown",     "fchownat", "utime",
         "utimes",    "futimesat",  "utimensat",  "umask",      "truncate", "ftruncate",
         "fallocate", "fsync",      "fdatasync",  "sync",       "syncfs",   "sync_file_range",
         "fadvise64", "readahead",  "ustat"});
  // Device nodes need CAP_MKNOD over the host, which nobody in a machine has.
  Allow(rules, "pipes with a name", {"mknod", "mknodat"});
  Allow(rules, "attributes of files",
        {"getxattr", "lgetxattr", "fgetxattr", "setxattr", "lsetxattr", "fsetxattr", "listxattr",
         "llistxattr", "flistxattr", "removexattr", "lremovexattr", "fremovexattr"});
  Allow(rules, "asynchronous files of databases",
        {"io_setup", "io_destroy", "io_submit", "io_cancel", "io_getevents", "io_pgetevents"});
}

void AllowMemory(Rules& rules) {
  Allow(rules, "memory",
        {"mmap",
         "munmap",
         "mprotect",
         "mremap",
         "madvise",
         "process_madvise",
         "msync",
         "mincore",
         "brk",
         "mlock",
         "mlock2",
         "munlock",
         "mlockall",
         "munlockall",
         "membarrier",
         "pkey_alloc",
         "pkey_free",
         "pkey_mprotect",
         "remap_file_pages",
         "mseal",
         "map_shadow_stack"});
  Allow(rules, "memory that processes share",
        {"shmget", "shmat", "shmdt", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget",
         "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive",
         "mq_notify", "mq_getsetattr"});
  Allow(rules, "where memory lies; only numactl would move it", {"get_mempolicy"});
}

void AllowProcesses(Rules& rules) {
  Allow(rules, "processes and threads",
        {"fork",
         "vfork",
         "execve",
         "execveat",
         "exit",
         "exit_group",
         "wait4",
         "waitid",
         "futex",
         "futex_waitv",
         "futex_wake",
         "futex_wait",
         "futex_requeue",
         "set_robust_list",
         "get_robust_list",
         "set_tid_address",
         "rseq",
         "gettid",
         "getpid",
         "getppid",
         "getpgid",
         "setpgid",
         "getpgrp",
         "getsid",
         "setsid",
         "kill",
         "tkill",
         "tgkill",
         "rt_sigqueueinfo",
         "rt_tgsigqueueinfo",
         "pidfd_open",
         "pidfd_send_signal",
         "prctl",
         "arch_prctl",
         "set_thread_area",
         "get_thread_area",
         "getcpu",
         "sched_yield",
         "sched_getaffinity",
         "sched_setaffinity",
         "sched_getparam",
         "sched_setparam",
         "sched_getscheduler",
         "sched_setscheduler",
         "sched_getattr",
         "sched_setattr",
         "sched_get_priority_max",
         "sched_get_priority_min",
         "sched_rr_get_interval",
         "getpriority",
         "setpriority",
         "ioprio_get",
         "ioprio_set",
         "getrusage",
         "times",
         "sysinfo",
         "uname",
         "getrlimit",
         "setrlimit",
         "prlimit64"});
  rules.push_back({"clone",
                   "processes and threads, and never a namespace",
                   {{.index = 0, .mask = kNamespaceFlags, .value = 0}},
                   0});
  // Its flags are in memory, where a filter cannot look; libc then takes clone.
  rules.push_back({"clone3", "refused so that libc takes clone", {}, ENOSYS});
  for (const std::uint64_t persona : {std::uint64_t{PER_LINUX}, std::uint64_t{ADDR_NO_RANDOMIZE},
                                      std::uint64_t{0x20000}, std::uint64_t{0xffffffff}}) {
    rules.push_back({"personality", "setarch, test programs", {Is(0, persona)}, 0});
  }
  Allow(rules, "users; what a process may do with them its capabilities say",
        {"getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups", "setuid",
         "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid", "setfsgid",
         "setgroups", "capget", "capset"});
  Allow(rules, "walls that programs put up for themselves",
        {"seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"});
  // EPERM would be taken for a fault by programs that ask before they use them.
  for (const char* name : {"io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd",
                           "bpf", "perf_event_open", "memfd_secret", "set_mempolicy", "mbind",
                           "kcmp", "add_key", "request_key", "keyctl"}) {
    rules.push_back({name, "said to be missing, so that callers do without", {}, ENOSYS});
  }
}

void AllowSignalsAndTime(Rules& rules) {
  Allow(rules, "signals",
        {"rt_sigreturn", "rt_sigaction", "rt_sigprocmask", "rt_sigpending", "rt_sigtimedwait",
         "rt_sigsuspend", "sigaltstack", "pause", "restart_syscall"});
  Allow(rules, "time",
        {"alarm", "setitimer", "getitimer", "timer_create", "timer_settime", "timer_gettime",
         "timer_getoverrun", "timer_delete", "clock_gettime", "clock_getres", "clock_nanosleep",
         "gettimeofday", "time", "nanosleep"});
  Allow(rules, "seeds", {"getrandom"});
}

void AllowSockets(Rules& rules) {
  for (const char* name : {"socket", "socketpair"}) {
    for (const int family : {AF_UNIX, AF_INET, AF_INET6}) {
      rules.push_back({name, "sockets", {Is(0, static_cast<std::uint64_t>(family))}, 0});
    }
  }
  rules.push_back({"socket",
                   "libc asks for the machine's addresses",
                   {Is(0, AF_NETLINK), Is(2, NETLINK_ROUTE)},
                   0});
  // EPERM is taken for a fault by PAM, and su and login fail.
  rules.push_back({"socket",
                   "said to be missing, so that callers do without",
                   {Is(0, AF_NETLINK), Is(2, NETLINK_AUDIT)},
                   EPROTONOSUPPORT});
  Allow(rules, "sockets",
        {"bind", "listen", "accept", "accept4", "connect", "shutdown", "getsockname", "getpeername",
         "getsockopt", "setsockopt", "sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg",
         "recvmmsg"});
}

}  // namespace

std::vector<os::SyscallRule> MachineSyscalls() {
  Rules rules;
  AllowFiles(rules);
  AllowMemory(rules);
  AllowProcesses(rules);
  AllowSignalsAndTime(rules);
  AllowSockets(rules);
  return rules;
}

}  // namespace caisson::machine
