// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sstream>
#include <utility>
#include <vector>

#include "errors/machine.h"
#include "json/writer.h"
#include "machine/agent_socket.h"
#include "os/syscall_error.h"

namespace caisson::machine::microvm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWallsPatience{20'000};
constexpr const char* kControlName = "control.sock";

std::unexpected<Status> VmFailed(const std::string& what) {
  return Fail(errors::kMachineVmFailed, what);
}

struct Address {
  os::UniqueFd directory;
  sockaddr_un name{};
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

Result<Address> ControlAddress(const std::string& directory) {
  Address address;
  CAISSON_ASSIGN(address.directory, os::OpenFile(directory, O_PATH | O_DIRECTORY));
  address.name.sun_family = AF_UNIX;
  const std::string path =
      fmt::format("/proc/self/fd/{}/{}", address.directory.get(), kControlName);
  path.copy(address.name.sun_path, sizeof address.name.sun_path - 1);
  return address;
}

Result<os::UniqueFd> ListenForHelper(const std::string& directory) {
  CAISSON_ASSIGN(const Address address, ControlAddress(directory));
  (void)::unlink((directory + "/" + kControlName).c_str());
  os::UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.valid() || ::bind(socket.get(), address.get(), sizeof address.name) != 0 ||
      ::listen(socket.get(), 8) != 0) {
    return os::SyscallError("listen for the helper");
  }
  return socket;
}

// Where no descriptor of the child's is.
Result<os::UniqueFd> MoveUp(int fd) {
  os::UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 100));
  if (!copy.valid()) return os::SyscallError("duplicate a descriptor");
  return copy;
}

Result<os::UniqueFd> PlanFile(const Plan& plan) {
  CAISSON_ASSIGN(const std::string text, json::Write(ToJson(plan)));
  const os::UniqueFd file(::memfd_create("plan", MFD_CLOEXEC));
  if (!file.valid() ||
      ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::lseek(file.get(), 0, SEEK_SET) != 0) {
    return os::SyscallError("write a plan");
  }
  return MoveUp(file.get());
}

class Spawner {
 public:
  Spawner() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    sigset_t set;
    ::sigemptyset(&set);
    ::posix_spawnattr_setsigmask(&attributes_, &set);
    ::sigfillset(&set);
    ::posix_spawnattr_setsigdefault(&attributes_, &set);
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    for (int fd = 0; fd < 3; ++fd) {
      ::posix_spawn_file_actions_addopen(&actions_, fd, "/dev/null", O_RDWR, 0);
    }
  }
  ~Spawner() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  // `fd` is kept until the child is started.
  Result<void> Place(int fd, int place) {
    CAISSON_ASSIGN(os::UniqueFd copy, MoveUp(fd));
    ::posix_spawn_file_actions_adddup2(&actions_, copy.get(), place);
    kept_.push_back(std::move(copy));
    return {};
  }
  Result<pid_t> Start(const std::string& program) {
    std::string name = "caisson-vmm";
    std::array<char*, 2> arguments = {name.data(), nullptr};
    std::array<char*, 1> environment = {nullptr};
    pid_t pid = 0;
    const int error = ::posix_spawn(&pid, program.c_str(), &actions_, &attributes_,
                                    arguments.data(), environment.data());
    if (error != 0) return VmFailed("start " + program + ": " + os::ErrnoText(error));
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  std::vector<os::UniqueFd> kept_;
};

Result<Report> AwaitReport(int fd) {
  pollfd event{fd, POLLIN, 0};
  Report report;
  if (::poll(&event, 1, static_cast<int>(kWallsPatience.count())) != 1 ||
      ::read(fd, &report, sizeof report) != sizeof report) {
    return VmFailed("caisson-vmm ended before its walls stood, or did not come to an end");
  }
  return report;
}

// Its words, as far as they are such.
std::string Words(const char* text, std::size_t size) {
  std::string words(text, ::strnlen(text, size));
  for (char& c : words) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = ' ';
  }
  while (words.ends_with(' ')) words.pop_back();
  return words;
}

}  // namespace

std::string WordsOf(const Reply& reply) { return Words(reply.text, sizeof reply.text); }

namespace {

std::unexpected<Status> FailureOf(const Reply& reply) {
  const std::string words = WordsOf(reply);
  switch (reply.outcome) {
    case Outcome::kFull:
      return Fail(errors::kMachineFull, "the host's disk is full; free some of it");
    case Outcome::kDamaged:
      return Fail(errors::kMachineDamaged, words);
    case Outcome::kAgentSilent:
      return Fail(errors::kMachineAgentLost, "the machine's agent: " + words);
    default:
      return VmFailed(words.empty() ? "the virtual machine failed" : words);
  }
}

}  // namespace

std::uint64_t ProcessorNanoseconds(pid_t process) {
  const std::string self = std::to_string(process);
  std::istringstream pids(
      self + " " + os::ReadSmallFile("/proc/" + self + "/task/" + self + "/children").value_or(""));
  std::uint64_t sum = 0;
  for (pid_t pid = 0; pids >> pid;) {
    clockid_t clock{};
    timespec used{};
    if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) continue;
    sum += static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(used.tv_nsec);
  }
  return sum;
}

Result<Started> StartVmm(const std::string& program, const std::string& directory, Plan plan,
                         std::span<const os::UniqueFd> tasks, int tap) {
  CAISSON_ASSIGN(const os::UniqueFd control, ListenForHelper(directory));
  CAISSON_ASSIGN(const os::UniqueFd agent, ListenForAgent(directory));
  CAISSON_ASSIGN(const os::FdPair report, os::MakePipe());
  CAISSON_ASSIGN(const os::UniqueFd null, os::OpenFile("/dev/null", O_RDWR));
  plan.tasks = static_cast<int>(tasks.size());
  CAISSON_ASSIGN(const os::UniqueFd text, PlanFile(plan));
  Spawner spawner;
  CAISSON_TRY(spawner.Place(text.get(), kPlanFd));
  CAISSON_TRY(spawner.Place(report.second.get(), kReportFd));
  CAISSON_TRY(spawner.Place(control.get(), kControlFd));
  CAISSON_TRY(spawner.Place(agent.get(), kAgentFd));
  CAISSON_TRY(spawner.Place(tap >= 0 ? tap : null.get(), kTapFd));
  int place = kFirstTaskFd;
  for (const os::UniqueFd& task : tasks) CAISSON_TRY(spawner.Place(task.get(), place++));
  CAISSON_ASSIGN(const pid_t first, spawner.Start(program));
  auto told = AwaitReport(report.first.get());
  if (!told) ::kill(first, SIGKILL);
  int status = 0;
  ::waitpid(first, &status, 0);
  if (!told) return Fail(std::move(told).error());
  if (told->pid <= 0) {
    return VmFailed("the walls of a virtual machine cannot be put up: " +
                    Words(told->step, sizeof told->step) + ": " + os::ErrnoText(told->error));
  }
  Started started{.pid = told->pid, .pidfd = {}};
  started.pidfd.Reset(static_cast<int>(::syscall(SYS_pidfd_open, told->pid, 0)));
  if (!started.pidfd.valid()) return VmFailed("the virtual machine ended at once");
  return started;
}

Result<Reply> AskVmm(const std::string& directory, Request request, milliseconds patience,
                     std::string_view text) {
  (void)!::getrandom(&request.sequence, sizeof request.sequence, 0);
  std::string message(reinterpret_cast<const char*>(&request), sizeof request);
  message += text;
  CAISSON_ASSIGN(const Address address, ControlAddress(directory));
  const os::UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return os::SyscallError("socket");
  const timeval limit{.tv_sec = static_cast<time_t>(patience.count() / 1000),
                      .tv_usec = static_cast<suseconds_t>(patience.count() % 1000 * 1000)};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(socket.get(), address.get(), sizeof address.name) != 0 ||
      ::send(socket.get(), message.data(), message.size(), MSG_NOSIGNAL) !=
          static_cast<ssize_t>(message.size())) {
    return VmFailed("the virtual machine's process is not there: " + os::ErrnoText(errno));
  }
  Reply reply;
  ssize_t n = 0;
  do {
    n = ::recv(socket.get(), &reply, sizeof reply, 0);
  } while ((n < 0 && errno == EINTR) || (n == sizeof reply && reply.sequence != request.sequence));
  if (n != sizeof reply) {
    return VmFailed(n < 0 && errno == EAGAIN ? "the virtual machine's process does not answer"
                                             : "the virtual machine has ended");
  }
  reply.text[sizeof reply.text - 1] = '\0';
  if (reply.outcome == Outcome::kDone || reply.outcome == Outcome::kUnquiet) return reply;
  return FailureOf(reply);
}

}  // namespace caisson::machine::microvm
