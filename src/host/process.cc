// SPDX-License-Identifier: Apache-2.0
#include "host/process.h"

#include <fcntl.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "errors/host.h"
#include "os/argument_pointers.h"
#include "os/capability.h"
#include "os/fd_passing.h"
#include "os/run_program.h"
#include "os/syscall_error.h"
#include "os/user_namespace.h"

namespace caisson::host {
namespace {

constexpr std::size_t kSocketBuffer = 1u << 20;
constexpr std::size_t kHandoverBuffer = 4u << 10;

// Everything that the child needs, made before it: it may not allocate.
struct ChildPlan {
  const char* path = nullptr;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  int go = -1;  // one byte is read from here once the ids of the child are mapped
  int release = -1;
  int null = -1;
  int output = -1;
  int channel = -1;
  int failure = -1;   // a ChildFailure is written here; closed by a successful exec
  int handover = -1;  // the listener goes here
  std::uint16_t listen_port = 0;
};
struct ChildFailure {
  int is_isolation = 0;
  int error = 0;
};

[[noreturn]] void FailChild(const ChildPlan& plan, bool is_isolation) {
  const ChildFailure failure{is_isolation ? 1 : 0, errno};
  (void)!::write(plan.failure, &failure, sizeof failure);
  ::_exit(127);
}

void ResetSignals() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < SIGRTMIN; ++signal) ::sigaction(signal, &action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool RaiseLoopback() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const bool raised = ::ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  ::close(fd);
  return raised;
}

bool HandOverListener(const ChildPlan& plan) {
  if (plan.listen_port == 0) return true;
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(plan.listen_port);
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  constexpr int kBacklog = 64;
  if (fd < 0 || ::bind(fd, reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0 ||
      ::listen(fd, kBacklog) != 0) {
    return false;
  }
  char byte = 'l';
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  os::FdSpace<1> space;
  space.Attach(message, {&fd, 1});
  const bool sent = ::sendmsg(plan.handover, &message, MSG_NOSIGNAL) == 1;
  ::close(fd);
  return sent;
}

// Whoever kept capabilities could go back to the network that it came from.
bool DropPrivileges() {
  constexpr int kMostCapabilities = 64;
  for (int capability = 0; capability < kMostCapabilities; ++capability) {
    if (::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) != 1) continue;
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return false;
  }
  constexpr unsigned kBits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                             SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  if (::prctl(PR_SET_SECUREBITS, kBits, 0, 0, 0) != 0) return false;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  return os::ClearCapabilities() == 0;
}

void PlaceDescriptors(const ChildPlan& plan) {
  if (::dup2(plan.null, 0) < 0 || ::dup2(plan.output, 1) < 0 || ::dup2(plan.output, 2) < 0 ||
      ::dup2(plan.channel, kChannelFd) < 0) {
    FailChild(plan, false);
  }
  constexpr unsigned kCloseOnExec = 4;  // CLOSE_RANGE_CLOEXEC
  if (::syscall(SYS_close_range, kChannelFd + 1, ~0u, kCloseOnExec) != 0) FailChild(plan, false);
}

// Async-signal-safe only.
[[noreturn]] void RunChild(const ChildPlan& plan) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::close(plan.release);
  char go = 0;
  if (::read(plan.go, &go, 1) != 1) ::_exit(126);  // the parent gave up, or has died
  ::setsid();
  ResetSignals();
  if (!RaiseLoopback() || !HandOverListener(plan)) FailChild(plan, true);
  PlaceDescriptors(plan);
  if (!DropPrivileges()) FailChild(plan, true);
  // Changes of credentials clear it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::execve(plan.path, plan.arguments, plan.environment);
  FailChild(plan, false);
}

// A copy of `fd` that no dup2 onto the low descriptors can overwrite.
Result<os::UniqueFd> MoveUp(int fd) {
  os::UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 10));
  if (!copy.valid()) return os::SyscallError("duplicate a descriptor");
  return copy;
}

Result<void> MakeNonBlocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
    return os::SyscallError("make a descriptor non-blocking");
  }
  return {};
}

struct Descriptors {
  os::UniqueFd go_read, failure_write, null, output_write, channel, handover_write;  // the child's
  os::UniqueFd go_write, failure_read, output_read, channel_of_ours, handover_read;  // ours
};

Result<Descriptors> OpenDescriptors() {
  Descriptors fds;
  CAISSON_ASSIGN(os::FdPair go, os::MakePipe());
  CAISSON_ASSIGN(os::FdPair failure, os::MakePipe());
  CAISSON_ASSIGN(os::FdPair output, os::MakePipe());
  CAISSON_ASSIGN(os::FdPair channel, os::MakeSocketPair(kSocketBuffer));
  CAISSON_ASSIGN(os::FdPair handover, os::MakeSocketPair(kHandoverBuffer));
  CAISSON_ASSIGN(fds.handover_write, MoveUp(handover.second.get()));
  fds.handover_read = std::move(handover.first);
  CAISSON_ASSIGN(os::UniqueFd null, os::OpenFile("/dev/null", O_RDWR));
  CAISSON_ASSIGN(fds.go_read, MoveUp(go.first.get()));
  CAISSON_ASSIGN(fds.failure_write, MoveUp(failure.second.get()));
  CAISSON_ASSIGN(fds.output_write, MoveUp(output.second.get()));
  CAISSON_ASSIGN(fds.channel, MoveUp(channel.second.get()));
  CAISSON_ASSIGN(fds.null, MoveUp(null.get()));
  fds.go_write = std::move(go.second);
  fds.failure_read = std::move(failure.first);
  fds.output_read = std::move(output.first);
  fds.channel_of_ours = std::move(channel.first);
  CAISSON_TRY(MakeNonBlocking(fds.channel_of_ours.get()));
  CAISSON_TRY(MakeNonBlocking(fds.output_read.get()));
  return fds;
}

std::unexpected<Status> NoIsolation(const std::string& why) {
  return Fail(
      errors::kHostNoIsolation,
      "the node host needs a network namespace of its own, which cannot be made here: " + why +
          "; allow user namespaces (kernel.unprivileged_userns_clone, "
          "user.max_user_namespaces), or run as root");
}

// With a user namespace, in which anybody may have a network; without one where root may not have
// user namespaces. Returns in the child, too.
Result<os::CloneResult> Clone(bool& has_user_namespace) {
  has_user_namespace = true;
  auto clone = os::CloneWithNamespaces(CLONE_NEWUSER | CLONE_NEWNET);
  if (clone || ::geteuid() != 0) {
    return clone ? std::move(clone) : NoIsolation(clone.error().message);
  }
  has_user_namespace = false;
  clone = os::CloneWithNamespaces(CLONE_NEWNET);
  return clone ? std::move(clone) : NoIsolation(clone.error().message);
}

// What the child handed over before it executed its program.
os::UniqueFd ReceiveListener(int handover) {
  char byte = 0;
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  os::FdSpace<1> space;
  space.Await(message);
  os::UniqueFd listener;
  if (::recvmsg(handover, &message, MSG_CMSG_CLOEXEC) != 1) return listener;
  os::TakeFds(message, [&](int fd) { listener.Reset(fd); });
  return listener;
}

// Waits until the child has executed its program.
Result<void> AwaitExec(int failure_fd, const std::string& program) {
  ChildFailure failure;
  ssize_t count = 0;
  do {
    count = ::read(failure_fd, &failure, sizeof failure);
  } while (count < 0 && errno == EINTR);
  if (count == 0) return {};
  if (count != sizeof failure) return os::SyscallError("start " + program);
  if (failure.is_isolation != 0) return NoIsolation(os::ErrnoText(failure.error));
  return Fail(errors::kHostUnavailable, "the node host cannot be started: execute " + program +
                                            ": " + os::ErrnoText(failure.error));
}

}  // namespace

Result<HostProcess> StartProcess(const ProcessOptions& options) {
  const std::string path = os::FindProgram(options.command.at(0));
  if (path.empty()) {
    return Fail(errors::kHostUnavailable,
                "the node host cannot be started: there is no program '" + options.command[0] +
                    "'; name the Python that has caisson-orcheo and orcheo installed "
                    "(caisson run --node-host)");
  }
  CAISSON_ASSIGN(Descriptors fds, OpenDescriptors());
  std::vector<std::string> words = options.command;
  std::vector<std::string> environment = options.environment;
  const std::vector<char*> arguments = os::ArgumentPointers(words);
  const std::vector<char*> variables = os::ArgumentPointers(environment);
  const ChildPlan plan{.path = path.c_str(),
                       .arguments = arguments.data(),
                       .environment = variables.data(),
                       .go = fds.go_read.get(),
                       .release = fds.go_write.get(),
                       .null = fds.null.get(),
                       .output = fds.output_write.get(),
                       .channel = fds.channel.get(),
                       .failure = fds.failure_write.get(),
                       .handover = fds.handover_write.get(),
                       .listen_port = options.listen_port};
  bool has_user_namespace = false;
  CAISSON_ASSIGN(os::CloneResult clone, Clone(has_user_namespace));
  if (clone.pid == 0) RunChild(plan);
  HostProcess started{os::ChildProcess(clone.pid, std::move(clone.pidfd)),
                      std::move(fds.channel_of_ours), std::move(fds.output_read), os::UniqueFd()};
  for (os::UniqueFd* fd : {&fds.go_read, &fds.failure_write, &fds.null, &fds.output_write,
                           &fds.channel, &fds.handover_write}) {
    fd->Reset();
  }
  if (has_user_namespace) {
    auto mapped = os::WriteIdMaps(clone.pid, ::geteuid());
    if (!mapped) return NoIsolation(mapped.error().message);
  }
  if (::write(fds.go_write.get(), "g", 1) != 1) return os::SyscallError("let a child go on");
  CAISSON_TRY(AwaitExec(fds.failure_read.get(), path));
  if (options.listen_port != 0) {
    started.listener = ReceiveListener(fds.handover_read.get());
    if (!started.listener.valid()) return os::SyscallError("take the socket of a node host", EIO);
  }
  return started;
}

}  // namespace caisson::host
