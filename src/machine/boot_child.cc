// SPDX-License-Identifier: Apache-2.0
#include "machine/boot_child.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "os/fd_passing.h"
#include "os/landlock.h"

namespace caisson::machine::boot {
namespace {

// What uid 0 may do inside, over its own files and processes: enough for apt, dpkg and pip. Not
// among them is fsetid: without it chmod drops the set-group-id bit of files of other groups, which
// no_new_privs makes void anyway. Nor setfcap, for the same reason: dpkg's scripts go on without.
constexpr std::array<int, 7> kCapabilities = {CAP_CHOWN,           CAP_DAC_OVERRIDE, CAP_FOWNER,
                                              CAP_SETUID,          CAP_SETGID,       CAP_KILL,
                                              CAP_NET_BIND_SERVICE};

// Of /proc: what tells of the host's kernel beyond what programs need.
constexpr std::array<const char*, 14> kHiddenFiles = {
    "proc/kcore",      "proc/kallsyms",     "proc/kmsg",        "proc/keys",
    "proc/key-users",  "proc/timer_list",   "proc/sched_debug", "proc/latency_stats",
    "proc/interrupts", "proc/kpagecgroup",  "proc/kpagecount",  "proc/kpageflags",
    "proc/config.gz",  "proc/sysrq-trigger"};
constexpr std::array<const char*, 4> kHiddenDirectories = {"proc/acpi", "proc/asound", "proc/scsi",
                                                           "proc/driver"};
constexpr std::array<const char*, 4> kReadOnly = {"proc/sys", "proc/bus", "proc/fs", "proc/irq"};

class Child {
 public:
  explicit Child(const ChildPlan& plan) : plan_(plan), control_(plan.control) {}

  [[noreturn]] void Run() {
    PlaceDescriptors();
    EnterRoot(ReceiveRoot());
    Tell({});
    TakeIdentity();
    PutUpWalls();
    ::syscall(SYS_execveat, plan_.program, "", plan_.arguments, plan_.environment, AT_EMPTY_PATH);
    Give("execute the agent", errno);
  }

 private:
  void Tell(const Report& report) const {
    (void)!::send(control_, &report, sizeof report, MSG_NOSIGNAL);
  }
  [[noreturn]] void Give(const char* step, int error) const {
    Report report{.error = error != 0 ? error : EIO};
    std::strncpy(report.step, step, sizeof report.step - 1);
    Tell(report);
    ::_exit(127);
  }
  long Do(const char* step, long result) const {
    if (result < 0) Give(step, errno);
    return result;
  }

  void PlaceDescriptors() {
    constexpr int kAbove = 64;
    control_ = plan_.fds[static_cast<std::size_t>(plan_.control - kListenFd)];
    std::array<int, kMaxDescriptors> high{};
    const auto count = static_cast<std::size_t>(plan_.count);
    for (std::size_t i = 0; i < count; ++i) {
      high[i] = static_cast<int>(Do("move a descriptor", ::fcntl(plan_.fds[i], F_DUPFD, kAbove)));
    }
    for (std::size_t i = 0; i < count; ++i) {
      const int number = kListenFd + static_cast<int>(i);
      const bool kept = static_cast<int>(i) < plan_.inherited;
      // dup3 has no name for "clear": without O_CLOEXEC the copy is inherited.
      Do("place a descriptor", ::dup3(high[i], number, kept ? 0 : O_CLOEXEC));
    }
    control_ = plan_.control;
    Do("close the other descriptors", ::syscall(SYS_close_range, kListenFd + plan_.count, ~0u, 0));
  }

  // One message from the parent; it has died or given up when there is none.
  std::size_t Receive(char* buffer, std::size_t size, int* fd) const {
    iovec part{.iov_base = buffer, .iov_len = size};
    os::FdSpace<1> space;
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    space.Await(message);
    ssize_t n = 0;
    do {
      n = ::recvmsg(control_, &message, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) ::_exit(126);
    if (fd != nullptr) {
      os::TakeFds(message, [fd](int received) { *fd = received; });
      if (*fd < 0) Give("receive the root", EPROTO);
    }
    return static_cast<std::size_t>(n);
  }

  // Comes once the id maps are written.
  int ReceiveRoot() const {
    char go = 0;
    int root = -1;
    Receive(&go, 1, &root);
    for (int task = plan_.first_task; task < plan_.last_task; ++task) {
      Do("enter a cgroup", ::write(task, "0", 1));
      ::close(task);
    }
    // Raw calls: libc's would reach for its own threads' list, which the child has not got.
    Do("become root inside", ::syscall(SYS_setresgid, 0, 0, 0));
    Do("become root inside", ::syscall(SYS_setgroups, 0, nullptr));
    Do("become root inside", ::syscall(SYS_setresuid, 0, 0, 0));
    // Now, so that the groups which it has come into are the root of what it sees.
    Do("make a cgroup namespace", ::unshare(CLONE_NEWCGROUP));
    ::setsid();
    ::umask(022);
    ResetSignals();
    return root;
  }

  static void ResetSignals() {
    struct sigaction action{};
    action.sa_handler = SIG_DFL;
    for (int signal = 1; signal < SIGRTMAX; ++signal) ::sigaction(signal, &action, nullptr);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
  }

  void EnterRoot(int root) const {
    Do("make mounts private", ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr));
    // On a place that every host has.
    Do("attach the root", ::move_mount(root, "", AT_FDCWD, "/dev", MOVE_MOUNT_F_EMPTY_PATH));
    ::close(root);
    Do("enter the root", ::chdir("/dev"));
    constexpr unsigned kInert = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    // While the host's is still there: the kernel gives a new one only to who sees a whole one.
    Mount("mount proc", "proc", "proc", kInert, {});
    Mount("mount run", "tmpfs", "run", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
          {{{"mode", "755"}, {"size", "64m"}, {"nr_inodes", "16384"}}});
    Mount("mount dev/shm", "tmpfs", "dev/shm", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
          {{{"mode", "1777"}}});
    Mount("mount dev/pts", "devpts", "dev/pts", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
          {{{"ptmxmode", "666"}, {"mode", "620"}, {"gid", "5"}}});
    Mount("mount dev/mqueue", "mqueue", "dev/mqueue", kInert, {});
    HideProc();
    // With both arguments ".", the old root is stacked on the new one, whence it is detached.
    Do("pivot_root", ::syscall(SYS_pivot_root, ".", "."));
    Do("detach the old root", ::umount2(".", MNT_DETACH));
    Do("enter the new root", ::chdir("/"));
    // The machine's own, for the agent's standard descriptors.
    const long null = Do("open /dev/null", ::open("/dev/null", O_RDWR | O_CLOEXEC));
    for (int fd = 0; fd < kListenFd; ++fd) {
      Do("place /dev/null", ::dup2(static_cast<int>(null), fd));
    }
  }

  struct Option {
    const char* key = nullptr;
    const char* value = nullptr;
  };
  // The place is no link: it is opened so, and mounted on by its descriptor.
  void Mount(const char* step, const char* type, const char* place, unsigned attributes,
             const std::array<Option, 3>& options) const {
    const int context = static_cast<int>(Do(step, ::fsopen(type, FSOPEN_CLOEXEC)));
    for (const Option& option : options) {
      if (option.key == nullptr) break;
      Do(step, ::fsconfig(context, FSCONFIG_SET_STRING, option.key, option.value, 0));
    }
    Do(step, ::fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0));
    const int mount = static_cast<int>(Do(step, ::fsmount(context, FSMOUNT_CLOEXEC, attributes)));
    const int directory =
        static_cast<int>(Do(step, ::open(place, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
    Do(step,
       ::move_mount(mount, "", directory, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
    ::close(directory);
    ::close(mount);
    ::close(context);
  }

  // Kernels differ in what they have; what there is is hidden.
  void HideProc() const {
    for (const char* file : kHiddenFiles) {
      if (::mount("dev/null", file, nullptr, MS_BIND, nullptr) != 0 && errno != ENOENT) {
        Give("hide a file of proc", errno);
      }
    }
    for (const char* directory : kHiddenDirectories) {
      if (::mount("dev/.empty", directory, nullptr, MS_BIND, nullptr) != 0 && errno != ENOENT) {
        Give("hide a directory of proc", errno);
      }
    }
    constexpr unsigned long kInert = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    for (const char* directory : kReadOnly) {
      if (::mount(directory, directory, nullptr, MS_BIND | MS_REC, nullptr) != 0) {
        if (errno == ENOENT) continue;
        Give("bind a part of proc", errno);
      }
      Do("make a part of proc read-only",
         ::mount(nullptr, directory, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | kInert, nullptr));
    }
  }

  // "host name\0 path\0 content\0 path\0 content\0": whoever prepares this knows that there is
  // room.
  void TakeIdentity() const {
    static char message[kMaxIdentity + 1];
    const std::size_t size = Receive(message, kMaxIdentity, nullptr);
    message[size] = 0;
    const char* at = message;
    const char* const end = message + size;
    const auto next = [&at, end] {
      const char* word = at;
      at = std::min(at + std::strlen(at) + 1, end);
      return word;
    };
    const char* host_name = next();
    Do("set the host name", ::sethostname(host_name, std::strlen(host_name)));
    while (at < end) {
      const char* path = next();
      WriteFile(path, next());
    }
  }

  // A disk of a fork may be full, or the guest may have put something odd there: its own affair.
  static void WriteFile(const char* path, const char* content) {
    const int file =
        ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (file < 0) return;
    (void)!::write(file, content, std::strlen(content));
    ::close(file);
  }

  void PutUpWalls() const {
    rlimit none{};
    Do("lower a limit", ::setrlimit(RLIMIT_CORE, &none));
    ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    for (int capability = 0; capability < 64; ++capability) {
      if (std::ranges::find(kCapabilities, capability) != kCapabilities.end()) continue;
      const int held = ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
      if (held < 0) break;
      if (held == 1) Do("shrink the bounding set", ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0));
    }
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2] = {};
    for (const int capability : kCapabilities) {
      data[capability / 32].permitted |= 1u << (capability % 32);
    }
    for (auto& word : data) word.effective = word.permitted;
    Do("take the capabilities", ::syscall(SYS_capset, &header, data));
    Do("set no_new_privs", ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    if (plan_.landlock >= 0) {
      const int error = os::RestrictThread(plan_.landlock);
      if (error != 0) Give("enter the Landlock domain", error);
    }
    Do("load the seccomp filter",
       ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &plan_.filter));
  }

  const ChildPlan& plan_;
  int control_;
};

}  // namespace

void RunChild(const ChildPlan& plan) { Child(plan).Run(); }

}  // namespace caisson::machine::boot
