// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/spawner.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <span>
#include <string>

#include "agent/guest/supervisor.h"
#include "os/fd_passing.h"
#include "os/write_all.h"

namespace caisson::agent::guest {
namespace {

constexpr std::size_t kMostDescriptors = 5;  // command, reports, streams

// By which an agent names a copy of its machine (guest/computer.h). CAP_SETPCAP is what takes the
// other one away, and goes last.
int DropAgentsCapabilities() {
  constexpr unsigned kOwn[] = {CAP_SYS_ADMIN, CAP_SETPCAP};
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return errno;
  if ((sets[0].permitted & (1U << CAP_SYS_ADMIN)) == 0) return 0;
  for (const unsigned capability : kOwn) {
    if (::prctl(PR_CAPBSET_DROP, capability) != 0) return errno;
  }
  for (const unsigned capability : kOwn) {
    const std::uint32_t kept = ~(1U << capability);
    sets[0].effective &= kept;
    sets[0].permitted &= kept;
    sets[0].inheritable &= kept;
  }
  return ::syscall(SYS_capset, &header, sets.data()) == 0 ? 0 : errno;
}

// In the spawner's process: what the agent has reserved for itself is not for commands.
int BecomeOrdinary(const std::vector<int>& cgroup_procs, const CommandLimits& limits) {
  ::prctl(PR_SET_NAME, "caisson-spawner");
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  for (const int fd : cgroup_procs) {
    if (::write(fd, "0", 1) != 1) return errno;
  }
  // The agent's own files in /proc are not even its own to write (PR_SET_DUMPABLE).
  ::prctl(PR_SET_DUMPABLE, 1);
  (void)os::WriteSmallFile("/proc/self/oom_score_adj", "0");
  ::prctl(PR_SET_DUMPABLE, 0);
  ::setpriority(PRIO_PROCESS, 0, 0);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(limits.open_files, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limits.drop_agents_capabilities) {
    if (const int error = DropAgentsCapabilities(); error != 0) return error;
  }
  if (limits.processes == 0) return 0;
  ::getrlimit(RLIMIT_NPROC, &limit);
  limit.rlim_cur = limit.rlim_max = std::min<rlim_t>(limits.processes, limit.rlim_max);
  return ::setrlimit(RLIMIT_NPROC, &limit) == 0 ? 0 : errno;
}

// The descriptors of one message; empty when the agent is gone.
std::vector<os::UniqueFd> ReceiveDescriptors(int socket) {
  char byte = 0;
  iovec piece{&byte, 1};
  os::FdSpace<kMostDescriptors> space;
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  space.Await(message);
  ssize_t count = 0;
  do {
    count = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  std::vector<os::UniqueFd> descriptors;
  if (count <= 0) return descriptors;
  os::TakeFds(message, [&descriptors](int fd) { descriptors.emplace_back(fd); });
  return descriptors;
}

[[noreturn]] void Serve(int socket) {
  for (;;) {
    std::vector<os::UniqueFd> got = ReceiveDescriptors(socket);
    if (got.empty()) ::_exit(0);
    if (got.size() < 3) continue;  // out of descriptors: the pipe's end tells the agent
    // Supervisors are the agent's children, but under gVisor, which knows no CLONE_PARENT: there
    // they would stay as zombies, and count, until nothing can be started any more.
    while (::waitpid(-1, nullptr, WNOHANG | __WALL) > 0) continue;
    StartSupervised({.command = got[0].get(),
                     .reports = got[1].get(),
                     .input = got[2].get(),
                     .output = got.size() > 3 ? got[3].get() : -1,
                     .errors = got.size() > 4 ? got[4].get() : -1,
                     .spawner_socket = socket});
  }
}

}  // namespace

Attempt<void> Spawner::Prepare() {
  if (pid_ > 0) return {};
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Fail(FailureKind::kInternal, "make the socket of the spawner", errno);
  }
  socket_.Reset(ends[0]);
  os::UniqueFd other(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return Fail(FailureKind::kBusy, "start the process that starts commands", errno);
  if (pid == 0) {
    // What it needs stands at 3; 0 to 2 stay, so that no stream of a command gets their numbers.
    const int error = BecomeOrdinary(cgroup_procs_, limits_);
    if (other.get() != 3) ::dup3(other.get(), 3, O_CLOEXEC);
    ::close_range(4, ~0U, 0);
    const char byte = static_cast<char>(error);
    if (::write(3, &byte, 1) != 1 || error != 0) ::_exit(1);
    Serve(3);
  }
  other.Reset();
  char error = 0;
  ssize_t count = 0;
  do {
    count = ::read(socket_.get(), &error, 1);
  } while (count < 0 && errno == EINTR);
  if (count != 1) return Fail(FailureKind::kInternal, "the spawner was killed as it started");
  if (error != 0) {
    return Fail(FailureKind::kInternal,
                "the spawner cannot join the cgroup of commands, or take their limits", error);
  }
  pid_ = pid;
  ::fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
  return {};
}

Attempt<void> Spawner::SendStart(const CommandStreams& streams, int command, int reports) {
  std::array<int, kMostDescriptors> descriptors{command, reports, streams.input.get(),
                                                streams.output.get(), streams.errors.get()};
  const std::size_t count = streams.output.valid() ? kMostDescriptors : 3;
  os::FdSpace<kMostDescriptors> space;
  char byte = 0;
  iovec piece{&byte, 1};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  space.Attach(message, std::span<const int>(descriptors).first(count));
  const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  if (sent == 1) return {};
  const int error = sent < 0 ? errno : EIO;
  return Fail(error == EAGAIN ? FailureKind::kBusy : FailureKind::kInternal,
              "hand a command to the process that starts them", error);
}

Attempt<void> Spawner::Start(const Command& command, CommandStreams streams, os::UniqueFd reports) {
  const os::UniqueFd file(::memfd_create("command", MFD_CLOEXEC));
  if (!file.valid() || (errno = os::WriteAll(file.get(), Encode(command))) != 0) {
    return Fail(FailureKind::kStartFailed, "keep the command's arguments", errno);
  }
  for (int attempt = 0;; ++attempt) {
    if (auto prepared = Prepare(); !prepared) return prepared;
    auto sent = SendStart(streams, file.get(), reports.get());
    if (sent || attempt == 3) return sent;
    // The second where it had not read everything yet: it was killed, and reaping will follow.
    if (sent.error().error != EPIPE && sent.error().error != ECONNRESET) return sent;
    pid_ = -1;
  }
}

}  // namespace caisson::agent::guest
