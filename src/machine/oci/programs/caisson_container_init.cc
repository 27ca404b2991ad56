// SPDX-License-Identifier: Apache-2.0
// The first program of a container that Docker or Podman makes for a machine. The helper tells it,
// on a socket that the container has of the host, what to clone: the machine's first process in
// namespaces of its own, in the machine's network and cgroups, which goes behind every wall that a
// jail has (machine/boot_child.h). Then it lays down what rights it has and waits: it ends with the
// machine, and when an engine ends it the kernel ends the machine. Static, and without libraries.
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "machine/boot_child.h"
#include "os/fd_passing.h"

namespace {

namespace boot = caisson::machine::boot;
namespace os = caisson::os;

constexpr std::size_t kMost = boot::kMaxDescriptors + 2;

int control = -1;

[[noreturn]] void Give(const char* step, int error) {
  boot::Report report{.error = error != 0 ? error : EIO};
  std::strncpy(report.step, step, sizeof report.step - 1);
  if (control >= 0) (void)::send(control, &report, sizeof report, MSG_NOSIGNAL);
  std::fprintf(stderr, "caisson-container-init: %s: %s\n", step, std::strerror(error));
  std::fflush(stderr);
  ::_exit(127);
}

void Must(bool done, const char* step) {
  if (!done) Give(step, errno);
}

void Connect() {
  control = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", boot::kHandoverPlace,
                boot::kHandoverName);
  Must(control >= 0 &&
           ::connect(control, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
       "connect to the helper");
}

struct Received {
  alignas(boot::Handover) std::array<char, boot::kMaxHandover> bytes{};
  std::size_t size = 0;
  std::array<int, kMost> fds{};
  std::size_t count = 0;
};

void Receive(Received& received) {
  iovec part{.iov_base = received.bytes.data(), .iov_len = received.bytes.size()};
  os::FdSpace<kMost> space;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  space.Await(message);
  ssize_t n = 0;
  do {
    n = ::recvmsg(control, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  Must(n > 0 && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0, "be told what to make");
  received.size = static_cast<std::size_t>(n);
  os::TakeFds(message, [&received](int fd) { received.fds[received.count++] = fd; });
}

// What is told is checked only for what would make this program itself wrong.
class Plan {
 public:
  explicit Plan(Received& received) {
    boot::Handover head;
    if (received.size < sizeof head) Give("be told what to make", EPROTO);
    std::memcpy(&head, received.bytes.data(), sizeof head);
    const auto count = static_cast<std::size_t>(head.count);
    const std::size_t needed = count + (head.has_group != 0 ? 1 : 0);  // control out, network in
    const auto words = static_cast<std::size_t>(head.arguments + head.variables);
    const std::size_t filter = static_cast<std::size_t>(head.instructions) * sizeof(sock_filter);
    const int place = head.control - boot::kListenFd;
    if (head.count < 1 || count > boot::kMaxDescriptors || needed != received.count ||
        head.arguments < 1 || head.variables < 0 || words + 2 > text_.size() ||
        head.instructions < 1 || sizeof head + filter > received.size || place < 0 ||
        place >= head.count) {
      Give("be told what to make", EPROTO);
    }
    plan_ = {.count = head.count,
             .inherited = head.inherited,
             .program = head.program,
             .control = head.control,
             .landlock = head.landlock,
             .first_task = head.first_task,
             .last_task = head.last_task};
    std::size_t from = 0;
    for (int i = 0; i < head.count; ++i) {
      plan_.fds[static_cast<std::size_t>(i)] = i == place ? control : received.fds[from++];
    }
    network_ = received.fds[from++];
    if (head.has_group != 0) group_ = received.fds[from];
    plan_.filter = {.len = static_cast<unsigned short>(head.instructions),
                    .filter = reinterpret_cast<sock_filter*>(received.bytes.data() + sizeof head)};
    char* at = received.bytes.data() + sizeof head + filter;
    char* const end = received.bytes.data() + received.size;
    std::size_t next = 0;
    const auto take = [&](int number) {
      for (int i = 0; i < number; ++i) {
        char* const stop =
            static_cast<char*>(std::memchr(at, 0, static_cast<std::size_t>(end - at)));
        if (stop == nullptr) Give("be told what to make", EPROTO);
        text_[next++] = at;
        at = stop + 1;
      }
      text_[next++] = nullptr;
    };
    plan_.arguments = &text_[next];
    take(head.arguments);
    plan_.environment = &text_[next];
    take(head.variables);
  }
  const boot::ChildPlan& child() const { return plan_; }
  int network() const { return network_; }
  int group() const { return group_; }

 private:
  boot::ChildPlan plan_;
  std::array<char*, boot::kMaxWords> text_{};
  int network_ = -1;
  int group_ = -1;
};

pid_t Clone(const Plan& plan) {
  clone_args arguments{};
  arguments.flags = boot::kNamespaces;
  arguments.exit_signal = SIGCHLD;
  if (plan.group() >= 0) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = static_cast<__u64>(plan.group());
  }
  const long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  Must(pid >= 0, "clone the machine's first process");
  if (pid != 0) return static_cast<pid_t>(pid);
  const boot::Report here;
  (void)::send(control, &here, sizeof here, MSG_NOSIGNAL);  // the kernel adds who says it
  boot::RunChild(plan.child());
}

void LayDownRights() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  if (::syscall(SYS_capset, &header, none) != 0) ::_exit(127);  // the machine ends with it
  ::syscall(SYS_close_range, 3, ~0U, 0);
}

}  // namespace

int main() {
  static Received received;
  Connect();
  Receive(received);
  const Plan plan(received);
  Must(::setns(plan.network(), CLONE_NEWNET) == 0, "enter the machine's network");
  const pid_t machine = Clone(plan);
  LayDownRights();
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, 0);
    if (ended == machine) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (ended < 0 && errno != EINTR) return 1;
  }
}
