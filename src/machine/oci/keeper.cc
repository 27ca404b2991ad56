// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

#include "os/argument_pointers.h"
#include "os/syscall_error.h"

namespace caisson::machine::oci {
namespace {

constexpr int kControl = 4;
constexpr int kSignals = 5;
constexpr int kLowest = 10;  // descriptors are moved here, out of the way of the ones above
constexpr int kStartMilliseconds = 20'000;

// Everything that the process needs, made before it: it may not allocate.
struct Prepared {
  char* const* start = nullptr;
  char* const* clear = nullptr;
  char* const* groups = nullptr;
  const char* pid_file = nullptr;
  std::array<int, 4> descriptors{};
  int control = -1;
};

void ResetSignals() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < SIGRTMIN; ++signal) ::sigaction(signal, &action, nullptr);
}

void SetMask(bool block_children) {
  sigset_t mask;
  ::sigemptyset(&mask);
  if (block_children) ::sigaddset(&mask, SIGCHLD);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
}

std::int64_t NowMilliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

std::uint64_t CpuOf(const rusage& usage) {
  const auto nanoseconds = [](const timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_usec) * 1'000;
  };
  return nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
}

// Async-signal-safe only, as the process of a program that has threads must be.
class Process {
 public:
  explicit Process(const Prepared& plan) : plan_(plan) {}
  [[noreturn]] void Run();

 private:
  struct Ended {
    pid_t pid = 0;
    int status = 0;
    std::uint64_t cpu = 0;
  };

  void PlaceDescriptors() const;
  void LetGoOfDescriptors() const;
  pid_t Execute(char* const* arguments, char* const* groups) const;
  void Reap();
  void Note(const Ended& ended);
  void RuntimeEnded(int status);
  pid_t ReadPidFile() const;
  void Say(KeeperEventKind kind, pid_t pid, int status, std::uint64_t cpu);
  bool Over() const { return over_; }
  void Wait(int milliseconds) const;
  void EndContainer();

  const Prepared& plan_;
  pid_t runtime_ = 0;    // 0: it has ended
  pid_t container_ = 0;  // with a pid file
  Ended other_;          // ended before we knew what it was
  bool over_ = false;
};

void Process::PlaceDescriptors() const {
  for (int fd = 0; fd < 4; ++fd) {
    const int from = plan_.descriptors[static_cast<std::size_t>(fd)];
    if (from >= 0) ::dup2(from, fd);
    if (from < 0) ::close(fd);
  }
  ::dup3(plan_.control, kControl, O_CLOEXEC);
  ::syscall(SYS_close_range, kSignals, ~0u, 0);
}

// The container's ends must be the only ones.
void Process::LetGoOfDescriptors() const {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; ++fd) {
    if (nothing < 0 || ::dup2(nothing, fd) < 0) ::close(fd);
  }
  ::close(3);
  if (nothing > 3 && nothing != kControl && nothing != kSignals) ::close(nothing);
}

// The calling process enters the groups. False when one cannot be entered.
bool Enter(char* const* groups) {
  for (; *groups != nullptr; ++groups) {
    const int fd = ::open(*groups, O_WRONLY | O_CLOEXEC);
    const bool entered = fd >= 0 && ::write(fd, "0", 1) == 1;
    ::close(fd);
    if (!entered) return false;
  }
  return true;
}

pid_t Process::Execute(char* const* arguments, char* const* groups) const {
  const long pid = ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid != 0) return static_cast<pid_t>(pid);
  SetMask(false);
  if (groups != nullptr && !Enter(groups)) ::_exit(126);
  ::execve(arguments[0], arguments, environ);
  ::_exit(127);
}

void Process::Say(KeeperEventKind kind, pid_t pid, int status, std::uint64_t cpu) {
  const KeeperEvent event{kind, status, pid, 0, cpu};
  (void)::send(kControl, &event, sizeof event, MSG_NOSIGNAL);
  if (kind == KeeperEventKind::kEnded) over_ = true;
}

pid_t Process::ReadPidFile() const {
  char text[32] = {};
  const int fd = ::open(plan_.pid_file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t n = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  pid_t pid = 0;
  for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; ++i) {
    pid = pid * 10 + (text[i] - '0');
  }
  return pid;
}

void Process::RuntimeEnded(int status) {
  runtime_ = 0;
  if (plan_.pid_file == nullptr || status != 0) {
    return Say(KeeperEventKind::kEnded, 0, status, 0);
  }
  container_ = ReadPidFile();
  if (container_ <= 1) return Say(KeeperEventKind::kEnded, 0, 1 << 8, 0);
  Say(KeeperEventKind::kStarted, container_, 0, 0);
  if (other_.pid == container_) Note(other_);
}

void Process::Note(const Ended& ended) {
  if (ended.pid == runtime_) return RuntimeEnded(ended.status);
  if (ended.pid == container_) {
    container_ = 0;
    return Say(KeeperEventKind::kEnded, ended.pid, ended.status, ended.cpu);
  }
  other_ = ended;
}

void Process::Reap() {
  for (;;) {
    Ended ended;
    rusage usage{};
    ended.pid = ::wait4(-1, &ended.status, WNOHANG, &usage);
    if (ended.pid <= 0) return;
    ended.cpu = CpuOf(usage);
    Note(ended);
  }
}

void Process::Wait(int milliseconds) const {
  pollfd event{kSignals, POLLIN, 0};
  (void)::poll(&event, 1, milliseconds);
  signalfd_siginfo info{};
  if (event.revents != 0) (void)!::read(kSignals, &info, sizeof info);
}

// A pid is not another's as long as we have not reaped it.
void Process::EndContainer() {
  const std::int64_t until = NowMilliseconds() + kStartMilliseconds;
  // A runtime that is killed half-way leaves half a container.
  while (plan_.pid_file != nullptr && runtime_ != 0 && NowMilliseconds() < until) {
    Wait(100);
    Reap();
  }
  if (runtime_ > 0) ::kill(runtime_, SIGKILL);
  if (container_ > 0) ::kill(container_, SIGKILL);
  while ((runtime_ > 0 || container_ > 0) && NowMilliseconds() < until + kStartMilliseconds) {
    Wait(100);
    Reap();
  }
}

void Process::Run() {
  ResetSignals();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  ::prctl(PR_SET_NAME, "caisson-keeper", 0, 0, 0);
  PlaceDescriptors();
  SetMask(true);
  sigset_t children;
  ::sigemptyset(&children);
  ::sigaddset(&children, SIGCHLD);
  const int signals = ::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals != kSignals) {
    ::dup3(signals, kSignals, O_CLOEXEC);
    ::close(signals);
  }
  runtime_ = Execute(plan_.start, plan_.groups);
  LetGoOfDescriptors();
  if (runtime_ <= 0) Say(KeeperEventKind::kEnded, 0, 127 << 8, 0);
  for (;;) {
    pollfd events[2] = {{kControl, POLLIN, 0}, {kSignals, POLLIN, 0}};
    if (::poll(events, 2, -1) < 0 && errno != EINTR) break;
    if (events[1].revents != 0) {
      Wait(0);
      Reap();
    }
    if (events[0].revents != 0) break;  // nothing is ever sent to us
  }
  EndContainer();
  const pid_t clear = Execute(plan_.clear, nullptr);
  const std::int64_t until = NowMilliseconds() + kStartMilliseconds;
  // Whatever else ends is reaped, too: it may be what the command waits for.
  while (clear > 0 && NowMilliseconds() < until) {
    const pid_t ended = ::waitpid(-1, nullptr, WNOHANG);
    if (ended == clear || ended < 0) break;
    if (ended == 0) Wait(50);
  }
  ::_exit(0);
}

Result<os::UniqueFd> MoveUp(int fd) {
  os::UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, kLowest));
  if (!copy.valid()) return os::SyscallError("duplicate a descriptor");
  return copy;
}

}  // namespace

Result<Keeper> Keeper::Start(const KeeperPlan& plan) {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
    return os::SyscallError("socketpair");
  }
  os::UniqueFd ours(fds[0]);
  const os::UniqueFd theirs(fds[1]);
  Prepared prepared;
  std::array<os::UniqueFd, 5> moved;
  for (std::size_t i = 0; i < plan.descriptors.size(); ++i) {
    prepared.descriptors[i] = -1;
    if (plan.descriptors[i] < 0) continue;
    CAISSON_ASSIGN(moved[i], MoveUp(plan.descriptors[i]));
    prepared.descriptors[i] = moved[i].get();
  }
  CAISSON_ASSIGN(moved[4], MoveUp(theirs.get()));
  prepared.control = moved[4].get();
  std::vector<std::string> start = plan.start;
  std::vector<std::string> clear = plan.clear;
  const std::vector<char*> start_words = os::ArgumentPointers(start);
  const std::vector<char*> clear_words = os::ArgumentPointers(clear);
  std::vector<std::string> groups = plan.groups;
  const std::vector<char*> group_words = os::ArgumentPointers(groups);
  prepared.groups = group_words.data();
  prepared.start = start_words.data();
  prepared.clear = clear_words.data();
  if (!plan.pid_file.empty()) prepared.pid_file = plan.pid_file.c_str();
  CAISSON_ASSIGN(os::CloneResult clone, os::CloneWithNamespaces(0));
  if (clone.pid == 0) Process(prepared).Run();
  Keeper keeper;
  keeper.process_ = os::ChildProcess(clone.pid, std::move(clone.pidfd));
  keeper.control_ = std::move(ours);
  return keeper;
}

Keeper::~Keeper() {
  Dismiss();
  (void)process_.Wait(std::chrono::milliseconds(3 * kStartMilliseconds));
}

Keeper& Keeper::operator=(Keeper&& other) noexcept {
  if (this == &other) return *this;
  Dismiss();
  (void)process_.Wait(std::chrono::milliseconds(3 * kStartMilliseconds));
  process_ = std::move(other.process_);
  control_ = std::move(other.control_);
  return *this;
}

std::optional<KeeperEvent> Keeper::Receive() {
  KeeperEvent event{};
  ssize_t n = 0;
  do {
    n = ::recv(control_.get(), &event, sizeof event, 0);
  } while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(sizeof event)) return std::nullopt;
  return event;
}

}  // namespace caisson::machine::oci
