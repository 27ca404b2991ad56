// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/agent.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <utility>

#include "agent/channel_pump.h"
#include "agent/guest/entrance.h"
#include "agent/guest/host_streams.h"
#include "agent/guest/self_endpoint.h"
#include "os/syscall_error.h"

namespace caisson::agent::guest {
namespace {

std::string DrawBootId() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  std::string text;
  constexpr char kHex[] = "0123456789abcdef";
  for (const unsigned char byte : bytes) {
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

// So that no stream of a command gets one of these numbers.
bool OpenStandardDescriptors() {
  int fd = 0;
  while (fd >= 0 && fd < 3) {
    if (::fcntl(fd, F_GETFD) >= 0) {
      ++fd;
      continue;
    }
    std::array<int, 2> ends{};
    const int opened = ::open("/dev/null", O_RDWR);
    if (opened < 0 && ::pipe(ends.data()) != 0) return false;
    fd = opened >= 0 ? opened + 1 : ends[1] + 1;
  }
  return true;
}

// What we were started with for our words is a file of the host, which nobody counts: commands,
// which may open what we have, get none of it. The result is where words went.
os::UniqueFd LeaveOutputs() {
  os::UniqueFd words(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 4));
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) ::close(fd);
  return words;
}

// As much of it as we may have: the machine's commands must not starve it.
void TakeReserves() {
  for (const char* score : {"-1000", "-999", "-500", "0"}) {
    if (os::WriteSmallFile("/proc/self/oom_score_adj", score)) break;
  }
  ::setpriority(PRIO_PROCESS, 0, -10);
}

std::uint64_t RaiseOpenFiles() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::uint64_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return before;
}

os::UniqueFd OpenEntrance(const Options& options) {
  if (options.vsock_port) return ListenOnVsock(*options.vsock_port);
  if (options.stream_listener >= 0) return os::UniqueFd(options.stream_listener);
  if (!options.port.empty()) return os::UniqueFd(::open(options.port.c_str(), O_RDWR | O_CLOEXEC));
  if (!options.listen_path.empty()) return ListenAt(options.listen_path);
  return os::UniqueFd(options.listener);
}

// Whatever loses its parent becomes ours.
class Reaper {
 public:
  Reaper(Agent& agent, os::UniqueFd signals)
      : agent_(agent), source_(agent.loop, std::move(signals), [this](std::uint32_t) { Reap(); }) {
    source_.Want(EPOLLIN);
  }

 private:
  void Reap() {
    signalfd_siginfo info{};
    while (::read(source_.fd(), &info, sizeof info) > 0) continue;
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      agent_.spawner.OnReaped(pid);
      agent_.children.OnReaped(pid, status);
    }
  }

  Agent& agent_;
  EventSource source_;
};

}  // namespace

Agent::Agent(const Options& options, std::uint64_t open_files)
    : spawner(options.cgroup_procs, {.open_files = open_files,
                                     .processes = options.command_processes,
                                     .drop_agents_capabilities = !options.listen_path.empty()}),
      children(loop, spawner, [this] { watchers.NoteActivity(); }),
      processes(loop, children),
      is_computer(options.has_computer()),
      sealed(options.has_computer()) {
  BeginLife();
}

void Agent::BeginLife() {
  boot_id = DrawBootId();
  processes.set_id_prefix("proc-" + boot_id.substr(0, 8));
}

void Agent::Seal() { sealed = true; }

void Agent::Open() {
  sealed = false;
  BeginLife();
}

Activity Agent::Measure() const {
  return {.commands = counts.commands,
          .streams = counts.streams,
          .processes = processes.CountRunning(),
          .output_bytes = children.output_bytes()};
}

void Agent::Forget(Disposable* object) {
  const auto found = std::ranges::find(others, object, &std::unique_ptr<Disposable>::get);
  if (found == others.end()) return;
  loop.Dispose(std::move(*found));
  others.erase(found);
}

void Agent::Forget(HostConnection* connection) {
  const auto found =
      std::ranges::find(connections, connection, &std::unique_ptr<HostConnection>::get);
  if (found == connections.end()) return;
  loop.Dispose(std::move(*found));
  connections.erase(found);
}

std::string RunAgent(const Options& options) {
  ::mallopt(M_MMAP_THRESHOLD, 64 << 10);
  ::mallopt(M_TRIM_THRESHOLD, 64 << 10);
  if (!OpenStandardDescriptors()) return "open the standard descriptors: " + os::ErrnoText(errno);
  for (const int fd : options.cgroup_procs) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  os::UniqueFd listener = OpenEntrance(options);
  if (!listener.valid()) {
    const std::string vsock =
        options.vsock_port ? "vsock port " + std::to_string(*options.vsock_port) : "";
    return "open the entrance " + options.port + options.listen_path + vsock + ": " +
           os::ErrnoText(errno);
  }
  ::fcntl(listener.get(), F_SETFD, FD_CLOEXEC);
  if (::fcntl(listener.get(), F_SETFL, O_NONBLOCK) != 0) {
    return "descriptor " + std::to_string(options.listener) +
           " is no listening socket: " + os::ErrnoText(errno);
  }
  sigset_t blocked;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGCHLD);
  os::UniqueFd signals(::signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return "make a signalfd: " + os::ErrnoText(errno);
  for (const int signal : {SIGPIPE, SIGXFSZ}) ::sigaddset(&blocked, signal);
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);

  Agent agent(options, RaiseOpenFiles());
  os::UniqueFd words = LeaveOutputs();
  const auto give_up = [&words](const Failure& failure) {
    ::dup2(words.get(), STDERR_FILENO);
    return failure.message;
  };
  if (!OpenStandardDescriptors()) return "open the standard descriptors: " + os::ErrnoText(errno);
  if (auto prepared = agent.spawner.Prepare(); !prepared) return give_up(prepared.error());
  TakeReserves();
  // The machine's own processes, root or not, shall not trace it or take its descriptors.
  ::prctl(PR_SET_DUMPABLE, 0);
  const auto endpoint = SelfEndpoint::Listen(agent, options.self_port);
  if (!endpoint) return give_up(endpoint.error());
  words.Reset();
  const Reaper reaper(agent, std::move(signals));
  std::unique_ptr<Entrance> entrance;
  std::unique_ptr<ChannelPump> pump;
  std::unique_ptr<HostStreams> streams;
  if (!options.port.empty()) {
    pump = ServeChannels(agent, std::move(listener), StreamKind::kPort, {});
  } else if (agent.is_computer) {
    streams = std::make_unique<HostStreams>(agent, std::move(listener));
  } else {
    entrance = std::make_unique<Entrance>(agent, std::move(listener), options.listen_path);
    agent.entrance = entrance.get();
  }
  agent.loop.Run();
}

}  // namespace caisson::agent::guest
