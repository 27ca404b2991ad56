// SPDX-License-Identifier: Apache-2.0
#include "os/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "os/argument_pointers.h"
#include "os/fd.h"
#include "os/syscall_error.h"

namespace caisson::os {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kGrace = std::chrono::seconds(10);
constexpr int kPollMilliseconds = 100;  // how soon a request to stop is noticed

// Everything that the child needs, made before it: it may not allocate.
struct ChildPlan {
  const char* path = nullptr;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  const char* directory = nullptr;
  std::array<int, 3> standard{};
  int failure = -1;  // errno is written here; closed by a successful exec
};

[[noreturn]] void FailChild(const ChildPlan& plan) {
  const int error = errno;
  (void)!::write(plan.failure, &error, sizeof error);
  ::_exit(127);
}

// Async-signal-safe only.
[[noreturn]] void RunChild(const ChildPlan& plan) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < SIGRTMIN; ++signal) ::sigaction(signal, &action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int fd = 0; fd < 3; ++fd) {
    if (::dup2(plan.standard[static_cast<std::size_t>(fd)], fd) < 0) FailChild(plan);
  }
  constexpr unsigned kCloseOnExec = 4;  // CLOSE_RANGE_CLOEXEC
  if (::syscall(SYS_close_range, 3, ~0u, kCloseOnExec) != 0) FailChild(plan);
  if (plan.directory != nullptr && ::chdir(plan.directory) != 0) FailChild(plan);
  ::execve(plan.path, plan.arguments, plan.environment);
  FailChild(plan);
}

std::vector<std::string> Environment(
    const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> words;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view word = *entry;
    const std::string_view name = word.substr(0, word.find('='));
    if (std::ranges::none_of(variables, [&](const auto& own) { return own.first == name; })) {
      words.emplace_back(word);
    }
  }
  for (const auto& [name, value] : variables) words.emplace_back(name).append("=").append(value);
  return words;
}

// A copy of `fd` that no dup2 onto the low descriptors can overwrite.
Result<UniqueFd> MoveUp(UniqueFd fd) {
  UniqueFd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 10));
  if (!copy.valid()) return SyscallError("duplicate a descriptor");
  return copy;
}

Result<UniqueFd> CreateFile(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid()) return SyscallError("create " + path);
  return fd;
}

struct Ends {
  UniqueFd input, output, messages, failure;          // the child's
  UniqueFd output_read, messages_read, failure_read;  // ours; output_read may be absent
};

Result<Ends> OpenEnds(const Program& program) {
  Ends ends;
  CAISSON_ASSIGN(UniqueFd input,
                 OpenFile(program.input.empty() ? "/dev/null" : program.input, O_RDONLY));
  CAISSON_ASSIGN(ends.input, MoveUp(std::move(input)));
  CAISSON_ASSIGN(FdPair messages, MakePipe());
  CAISSON_ASSIGN(ends.messages, MoveUp(std::move(messages.second)));
  ends.messages_read = std::move(messages.first);
  CAISSON_ASSIGN(FdPair failure, MakePipe());
  CAISSON_ASSIGN(ends.failure, MoveUp(std::move(failure.second)));
  ends.failure_read = std::move(failure.first);
  if (!program.output.empty()) {
    CAISSON_ASSIGN(UniqueFd file, CreateFile(program.output));
    CAISSON_ASSIGN(ends.output, MoveUp(std::move(file)));
    return ends;
  }
  CAISSON_ASSIGN(FdPair output, MakePipe());
  CAISSON_ASSIGN(ends.output, MoveUp(std::move(output.second)));
  ends.output_read = std::move(output.first);
  return ends;
}

Result<void> AwaitExec(int failure_fd, const std::string& program) {
  int error = 0;
  ssize_t count = 0;
  do {
    count = ::read(failure_fd, &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  if (count == 0) return {};
  return SyscallError("execute " + program, count == sizeof error ? error : EIO);
}

Result<ChildProcess> Start(const Program& program, Ends& ends) {
  const std::string path = FindProgram(program.arguments.at(0));
  if (path.empty()) return SyscallError("find " + program.arguments[0] + " in PATH", ENOENT);
  std::vector<std::string> words = program.arguments;
  std::vector<std::string> environment = Environment(program.variables);
  const std::vector<char*> arguments = ArgumentPointers(words);
  const std::vector<char*> variables = ArgumentPointers(environment);
  const ChildPlan plan{.path = path.c_str(),
                       .arguments = arguments.data(),
                       .environment = variables.data(),
                       .directory = program.directory.empty() ? nullptr : program.directory.c_str(),
                       .standard = {ends.input.get(), ends.output.get(), ends.messages.get()},
                       .failure = ends.failure.get()};
  CAISSON_ASSIGN(CloneResult clone, CloneWithNamespaces(0));
  if (clone.pid == 0) RunChild(plan);
  ChildProcess child(clone.pid, std::move(clone.pidfd));
  for (UniqueFd* fd : {&ends.input, &ends.output, &ends.messages, &ends.failure}) fd->Reset();
  CAISSON_TRY(AwaitExec(ends.failure_read.get(), path));
  return child;
}

// Hands on the lines of standard error as they become whole. A line without an end is cut.
class MessageLines {
 public:
  explicit MessageLines(const std::function<void(std::string_view)>& take) : take_(take) {}
  void Add(std::string_view text) {
    if (!take_) return;
    pending_ += text;
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = pending_.find('\n', begin)) != std::string::npos;) {
      take_(std::string_view(pending_).substr(begin, end - begin));
      begin = end + 1;
    }
    pending_.erase(0, begin);
    if (pending_.size() > kKeptMessages) Finish();
  }
  void Finish() {
    if (!pending_.empty()) take_(pending_);
    pending_.clear();
  }

 private:
  const std::function<void(std::string_view)>& take_;
  std::string pending_;
};

// False at the end of the stream.
bool ReadSome(int fd, std::string& into) {
  std::array<char, 65536> buffer;
  const ssize_t count = ::read(fd, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR;
  into.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0;
}

void KeepEnd(std::string& messages) {
  if (messages.size() <= kKeptMessages) return;
  const std::size_t from = messages.find('\n', messages.size() - kKeptMessages);
  messages.erase(0, from == std::string::npos ? messages.size() - kKeptMessages : from + 1);
}

// SIGTERM at once, SIGKILL when the grace is over.
class Stopper {
 public:
  Stopper(const std::stop_token& stop, ChildProcess& child) : stop_(stop), child_(child) {}
  void Tick() {
    if (!stop_.stop_requested()) return;
    if (!deadline_) {
      deadline_ = Clock::now() + kGrace;
      ::syscall(SYS_pidfd_send_signal, child_.pidfd(), SIGTERM, nullptr, 0);
    } else if (Clock::now() > *deadline_) {
      child_.Kill();
    }
  }

 private:
  const std::stop_token& stop_;
  ChildProcess& child_;
  std::optional<Clock::time_point> deadline_;
};

// Reads until both streams have ended, or the program has and nothing more is at hand: a
// grandchild that keeps a stream open does not hold us up.
Result<void> Drain(Ends& ends, ChildProcess& child, Stopper& stopper, MessageLines& lines,
                   ProgramEnd& end) {
  for (;;) {
    std::array<pollfd, 3> events = {{{ends.output_read.get(), POLLIN, 0},
                                     {ends.messages_read.get(), POLLIN, 0},
                                     {child.pidfd(), POLLIN, 0}}};
    const int ready = ::poll(events.data(), events.size(), kPollMilliseconds);
    if (ready < 0 && errno != EINTR) return SyscallError("poll the streams of a program");
    stopper.Tick();
    if (ready <= 0) continue;
    if (events[0].revents != 0 && !ReadSome(events[0].fd, end.output)) ends.output_read.Reset();
    const std::size_t known = end.messages.size();
    if (events[1].revents != 0 && !ReadSome(events[1].fd, end.messages)) ends.messages_read.Reset();
    lines.Add(std::string_view(end.messages).substr(known));
    KeepEnd(end.messages);
    if (end.output.size() > kMaxCapturedOutput) {
      return SyscallError("capture the output of a program", EFBIG);
    }
    if (events[0].revents == 0 && events[1].revents == 0 && events[2].revents != 0) return {};
  }
}

}  // namespace

std::string FindProgram(const std::string& name) {
  const auto is_program = [](const std::string& path) {
    return ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0;
  };
  if (name.find('/') != std::string::npos) return is_program(name) ? name : "";
  const char* value = std::getenv("PATH");
  std::string_view rest = value == nullptr ? "/usr/sbin:/usr/bin:/sbin:/bin" : value;
  for (;;) {
    const std::size_t colon = rest.find(':');
    std::string path = std::string(rest.substr(0, colon)) + "/" + name;
    if (path[0] == '/' && is_program(path)) return path;
    if (colon == std::string_view::npos) return "";
    rest.remove_prefix(colon + 1);
  }
}

Result<ProgramEnd> RunProgram(const Program& program, const std::stop_token& stop) {
  CAISSON_ASSIGN(Ends ends, OpenEnds(program));
  CAISSON_ASSIGN(ChildProcess child, Start(program, ends));
  ProgramEnd end;
  Stopper stopper(stop, child);
  MessageLines lines(program.on_message);
  CAISSON_TRY(Drain(ends, child, stopper, lines, end));
  lines.Finish();
  const auto status = child.Wait(std::chrono::seconds(60));
  if (!status) return SyscallError("wait for " + program.arguments[0], ETIMEDOUT);
  end.status = *status;
  return end;
}

}  // namespace caisson::os
