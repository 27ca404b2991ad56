// SPDX-License-Identifier: Apache-2.0
#include "jail/test_attacks.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

#include "jail/spawn.h"

namespace caisson::jail {
namespace {

int Check(long result) { return result < 0 ? errno : 0; }

int ConnectInet() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return errno;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(53);
  address.sin_addr.s_addr = htonl(0xc0000201);  // 192.0.2.1, for documentation
  return Check(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address));
}

int ConnectAbstract() {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, "caisson-jail-test", 17);
  return Check(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t) + 18));
}

int ForkMany() {
  for (int i = 0; i < 200; ++i) {
    const pid_t pid = ::fork();
    if (pid < 0) return errno;
    if (pid == 0) {
      for (;;) ::pause();
    }
  }
  return 0;
}

int TouchMemory() {
  constexpr std::size_t kSize = 192u << 20;
  void* block = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return errno;
  for (std::size_t i = 0; i < kSize; i += 4096) static_cast<volatile char*>(block)[i] = 1;
  return 0;
}

int WriteOutFile() {
  const int fd = ::open("/tmp/caisson-jail-test-file", O_CREAT | O_WRONLY, 0600);
  if (fd < 0) return errno;
  return Check(::write(fd, "x", 1));
}

int MakeFile() { return Check(::open("/x", O_CREAT | O_WRONLY, 0600)); }

int SeeParent() {
  // In a pid namespace of its own an inmate is process 1 and there is no other.
  return ::getpid() == 1 && ::kill(2, 0) != 0 ? ESRCH : 0;
}

int StartThread() {
  std::atomic<int> ran{0};
  std::thread thread([&] { ran = 1; });
  thread.join();
  return ran == 1 ? 0 : EIO;
}

// With flags that would make the child harmless, should it ever be made: it ends at once.
int CloneInto(std::uint64_t namespaces) {
  const long pid = ::syscall(SYS_clone, namespaces | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid == 0) ::_exit(0);
  return Check(pid);
}

int Clone3Into(std::uint64_t namespaces) {
  clone_args arguments{};
  arguments.flags = namespaces;
  arguments.exit_signal = SIGCHLD;
  const long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid == 0) ::_exit(0);
  return Check(pid);
}

int ExecuteFromMemory() {
  const int fd = ::memfd_create("x", MFD_CLOEXEC);
  if (fd < 0) return errno;
  char* const arguments[] = {nullptr};
  ::syscall(SYS_execveat, fd, "", arguments, arguments, AT_EMPTY_PATH);
  return errno;
}

int PassDescriptor() {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  char byte = 'x';
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = kChannelFd;
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return Check(::sendmsg(kChannelFd, &message, 0));
}

// Memory that was written to becomes code.
int TurnDataIntoCode() {
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return errno;
  return Check(::mprotect(page, 4096, PROT_READ | PROT_EXEC));
}

int MakeBpfMap() {
  bpf_attr attributes{};
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = 4;
  attributes.value_size = 4;
  attributes.max_entries = 1;
  return Check(::syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes));
}

int CountOwnCycles() {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.exclude_kernel = 1;
  return Check(::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
}

int ReadOther() {
  char byte = 0;
  iovec local{&byte, 1};
  iovec remote{&byte, 1};
  return Check(::process_vm_readv(2, &local, 1, &remote, 1, 0));
}

int WriteOther() {
  char byte = 0;
  iovec local{&byte, 1};
  iovec remote{&byte, 1};
  return Check(::process_vm_writev(2, &local, 1, &remote, 1, 0));
}

#if defined(__x86_64__)
// The other ways into the kernel that this machine has: numbers there mean other calls.
int OldGate() {
  constexpr int kGetPid32 = 20;
  long result = kGetPid32;
  asm volatile("int $0x80" : "+a"(result) : : "memory");
  return result > 0 ? 0 : static_cast<int>(-result);
}
int X32Gate() {
  constexpr long kX32 = 0x40000000;
  return Check(::syscall(kX32 + SYS_getpid));
}
#endif

// More than a heap of malloc's for threads holds (64 MiB), and all of it given back.
int AllocateAndFree() {
  std::vector<std::vector<char>> blocks(1200);
  for (auto& block : blocks) block.assign(100'000, 'x');
  while (!blocks.empty()) blocks.pop_back();
  return 0;
}

}  // namespace

const std::map<std::string, std::function<int()>>& Attacks() {
  static const std::map<std::string, std::function<int()>> attacks = {
      {"nothing", [] { return 0; }},
      {"start_thread", StartThread},
      {"allocate", [] { return std::vector<char>(8u << 20, 'x').back() == 'x' ? 0 : EIO; }},
      {"allocate_and_free", AllocateAndFree},
      {"open_passwd", [] { return Check(::open("/etc/passwd", O_RDONLY)); }},
      {"open_proc", [] { return Check(::open("/proc/self/status", O_RDONLY)); }},
      {"open_root", [] { return Check(::open("/", O_RDONLY | O_DIRECTORY)); }},
      {"write_file", WriteOutFile},
      {"make_file", MakeFile},
      {"execute", [] { return Check(::execl("/bin/true", "true", nullptr)); }},
      {"connect_inet", ConnectInet},
      {"connect_abstract", ConnectAbstract},
      {"socket_inet", [] { return Check(::socket(AF_INET, SOCK_STREAM, 0)); }},
      {"socket_inet6", [] { return Check(::socket(AF_INET6, SOCK_STREAM, 0)); }},
      {"socket_unix", [] { return Check(::socket(AF_UNIX, SOCK_STREAM, 0)); }},
      {"socket_vsock", [] { return Check(::socket(40, SOCK_STREAM, 0)); }},
      {"socket_netlink", [] { return Check(::socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)); }},
      {"socketpair",
       [] {
         int fds[2];
         return Check(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
       }},
      {"ptrace", [] { return Check(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); }},
      {"io_uring",
       [] {
         char parameters[120] = {};
         return Check(::syscall(SYS_io_uring_setup, 4, parameters));
       }},
      {"userfaultfd", [] { return Check(::syscall(SYS_userfaultfd, O_CLOEXEC)); }},
      {"keyctl", [] { return Check(::syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, -3, 1)); }},
      {"bpf", MakeBpfMap},
      {"perf", CountOwnCycles},
      {"unshare", [] { return Check(::unshare(CLONE_NEWUSER)); }},
      {"mount", [] { return Check(::mount("x", "/", "tmpfs", 0, nullptr)); }},
      {"sethostname", [] { return Check(::sethostname("x", 1)); }},
      {"memfd", [] { return Check(::memfd_create("x", 0)); }},
      {"fork", [] { return Check(::fork()); }},
      {"fork_many", ForkMany},
      {"kill_parent", [] { return Check(::kill(::getppid(), 0)); }},
      {"see_processes", SeeParent},
      {"map_code",
       [] {
         return ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
                        MAP_FAILED
                    ? errno
                    : 0;
       }},
      {"read_environment", [] { return ::getenv("CAISSON_JAIL_TEST") == nullptr ? ENOENT : 0; }},
      {"use_inherited_fd", [] { return Check(::fcntl(100, F_GETFD)); }},
      {"write_inherited_fd", [] { return Check(::write(100, "x", 1)); }},
      {"touch_memory", TouchMemory},
      {"new_descriptor", [] { return Check(::dup(kChannelFd)); }},
      {"regain_user", [] { return Check(::syscall(SYS_setresuid, 0, 0, 0)); }},
      {"socket_packet", [] { return Check(::socket(AF_PACKET, SOCK_RAW, 0)); }},
      {"socket_alg", [] { return Check(::socket(AF_ALG, SOCK_SEQPACKET, 0)); }},
      {"pass_descriptor", PassDescriptor},
      {"attach_other", [] { return Check(::ptrace(PTRACE_ATTACH, 2, nullptr, nullptr)); }},
      {"read_other", ReadOther},
      {"write_other", WriteOther},
      {"open_other", [] { return Check(::syscall(SYS_pidfd_open, 2, 0)); }},
      {"open_proc_of_first", [] { return Check(::open("/proc/1/environ", O_RDONLY)); }},
      {"kill_group", [] { return Check(::kill(0, 0)); }},
      {"kill_other", [] { return Check(::kill(2, 0)); }},
      {"kill_thread_of_other", [] { return Check(::syscall(SYS_tgkill, 2, 2, 0)); }},
      {"queue_signal", [] { return Check(::syscall(SYS_rt_sigqueueinfo, 2, 0, nullptr)); }},
      {"clone_user", [] { return CloneInto(CLONE_NEWUSER); }},
      {"clone_network", [] { return CloneInto(CLONE_NEWNET); }},
      {"clone3_user", [] { return Clone3Into(CLONE_NEWUSER); }},
      {"vfork", [] { return Check(::syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0)); }},
      {"join_namespace", [] { return Check(::setns(0, 0)); }},
      {"execute_from_memory", ExecuteFromMemory},
      {"turn_data_into_code", TurnDataIntoCode},
      {"change_root", [] { return Check(::chroot("/")); }},
      {"pivot_root", [] { return Check(::syscall(SYS_pivot_root, "/", "/")); }},
      {"open_file_system", [] { return Check(::syscall(SYS_fsopen, "tmpfs", 0)); }},
      {"open_tree", [] { return Check(::syscall(SYS_open_tree, AT_FDCWD, "/", 0)); }},
      {"openat2", [] { return Check(::syscall(SYS_openat2, AT_FDCWD, "/", nullptr, 0)); }},
      {"open_by_handle",
       [] { return Check(::syscall(SYS_open_by_handle_at, AT_FDCWD, nullptr, O_RDONLY)); }},
      {"read_link",
       [] { return Check(::syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", nullptr, 0)); }},
      {"look_at_file",
       [] {
         struct stat status;
         return Check(::stat("/etc/passwd", &status));
       }},
      {"add_key", [] { return Check(::syscall(SYS_add_key, "user", "x", "y", 1, -3)); }},
      {"request_key", [] { return Check(::syscall(SYS_request_key, "user", "x", nullptr, 0)); }},
      {"shared_memory", [] { return Check(::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600)); }},
      {"message_queue", [] { return Check(::msgget(IPC_PRIVATE, IPC_CREAT | 0600)); }},
      {"pipe",
       [] {
         int fds[2];
         return Check(::pipe(fds));
       }},
      {"eventfd", [] { return Check(::eventfd(0, 0)); }},
      {"inotify", [] { return Check(::inotify_init1(0)); }},
      {"fanotify", [] { return Check(::syscall(SYS_fanotify_init, 0, 0)); }},
      {"timer_fd", [] { return Check(::timerfd_create(CLOCK_MONOTONIC, 0)); }},
      {"control_terminal", [] { return Check(::ioctl(2, TIOCSTI, "x")); }},
      {"raise_limit",
       [] {
         const rlimit limit{1024, 1024};
         return Check(::setrlimit(RLIMIT_NOFILE, &limit));
       }},
      {"personality", [] { return Check(::personality(0xffffffff)); }},
      {"set_clock", [] { return Check(::syscall(SYS_clock_settime, CLOCK_REALTIME, nullptr)); }},
      {"load_module", [] { return Check(::syscall(SYS_finit_module, -1, "", 0)); }},
      {"reboot", [] { return Check(::syscall(SYS_reboot, 0, 0, 0, nullptr)); }},
      {"read_kernel_log", [] { return Check(::klogctl(10, nullptr, 0)); }},
      {"trap_own_calls", [] { return Check(::prctl(PR_SET_SECCOMP, 1)); }},
      {"take_death_signal_off", [] { return Check(::prctl(PR_SET_PDEATHSIG, 0)); }},
#if defined(__x86_64__)
      {"old_gate", OldGate},
      {"x32_gate", X32Gate},
      {"ports", [] { return Check(::syscall(SYS_iopl, 3)); }},
#endif
      {"not_dumpable", [] { return ::prctl(PR_GET_DUMPABLE) == 0 ? EPERM : 0; }},
  };
  return attacks;
}

}  // namespace caisson::jail
