// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/supervisor.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "agent/guest/spawner.h"
#include "agent/messages.h"

// The C library's own vfork: the one by its usual name is a fork under ThreadSanitizer, in which
// the command would run on a copy of our memory, and beside us. A posix_spawn can do too little.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" [[gnu::returns_twice]] pid_t __vfork();

namespace caisson::agent::guest {
namespace {

using Kind = SupervisorReport::Kind;

void Report(int fd, Kind kind, int a, int b) {
  const SupervisorReport report{kind, a, b};
  // Nobody may be left to hear it.
  [[maybe_unused]] const ssize_t written = ::write(fd, &report, sizeof report);
}

std::optional<Command> ReadCommand(int fd) {
  struct stat about{};
  if (::fstat(fd, &about) != 0) return std::nullopt;
  std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
  if (::pread(fd, bytes.data(), bytes.size(), 0) != about.st_size) return std::nullopt;
  return Decode<Command>(bytes);
}

// Where execvp would look.
std::vector<std::string> Candidates(const Command& command) {
  const std::string& program = command.argv[0];
  if (program.find('/') != std::string::npos) return {program};
  const auto found = command.env.find("PATH");
  const std::string path = found != command.env.end() ? found->second : "/usr/bin:/bin";
  std::vector<std::string> candidates;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    candidates.push_back((folder.empty() ? "." : folder) + "/" + program);
    begin = end + 1;
  }
  return candidates;
}

// Made before the fork: the command's process shares the supervisor's memory until it executes.
struct Prepared {
  std::vector<std::string> programs;
  std::vector<std::string> variables;
  std::vector<char*> argv;
  std::vector<char*> envp;
  std::vector<char*> shell_argv;  // /bin/sh PROGRAM ARGUMENTS, for a script without "#!"
  std::string cwd;
};

Prepared Prepare(Command& command) {
  Prepared prepared;
  prepared.programs = Candidates(command);
  prepared.cwd = command.cwd.empty() ? "/" : command.cwd;
  static char shell[] = "/bin/sh";
  prepared.shell_argv = {shell, nullptr};
  for (std::string& argument : command.argv) prepared.argv.push_back(argument.data());
  for (std::size_t i = 1; i < prepared.argv.size(); ++i) {
    prepared.shell_argv.push_back(prepared.argv[i]);
  }
  for (const auto& [name, value] : command.env) {
    prepared.variables.push_back(name);
    prepared.variables.back().append("=").append(value);
  }
  for (std::string& variable : prepared.variables) prepared.envp.push_back(variable.data());
  prepared.argv.push_back(nullptr);
  prepared.envp.push_back(nullptr);
  prepared.shell_argv.push_back(nullptr);
  return prepared;
}

struct StartError {
  int error = 0;
  StartStage stage = StartStage::kProgram;
};

// As execvp: goes on after ENOENT and the like, and tells of a file that may not be executed.
int Execute(Prepared& prepared) {
  int error = ENOENT;
  for (std::string& program : prepared.programs) {
    ::execve(program.c_str(), prepared.argv.data(), prepared.envp.data());
    if (errno == ENOEXEC) {
      prepared.shell_argv[1] = program.data();
      ::execve(prepared.shell_argv[0], prepared.shell_argv.data(), prepared.envp.data());
      return ENOEXEC;
    }
    if (errno == EACCES) {
      error = EACCES;
    } else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE && errno != ENODEV) {
      return errno;
    }
  }
  return error;
}

// In the command's process. Only system calls: the memory is the supervisor's.
StartError BecomeCommand(const SupervisedStart& start, Prepared& prepared) {
  ::setsid();
  // Before anything of the command can run, and end the supervisor.
  Report(start.reports, Kind::kBegun, ::getpid(), ::getppid());
  const bool has_terminal = start.output < 0;
  if (has_terminal && ::ioctl(start.input, TIOCSCTTY, 0) != 0) {
    return {errno, StartStage::kTerminal};
  }
  const int output = has_terminal ? start.input : start.output;
  const int errors = has_terminal ? start.input : start.errors;
  if (::dup2(start.input, 0) < 0 || ::dup2(output, 1) < 0 || ::dup2(errors, 2) < 0) {
    return {errno, StartStage::kTerminal};
  }
  if (::chdir(prepared.cwd.c_str()) != 0) return {errno, StartStage::kDirectory};
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  return {Execute(prepared), StartStage::kProgram};
}

// Not inlined, so that nothing of the caller's frame can be clobbered by the child.
[[gnu::noinline]] pid_t StartCommand(const SupervisedStart& start, Prepared& prepared,
                                     StartError& error) {
  const pid_t pid = __vfork();
  if (pid == 0) {
    error = BecomeCommand(start, prepared);
    ::_exit(127);
  }
  if (pid < 0) error = {errno, StartStage::kFork};
  return pid;
}

// As waitpid(2) has it.
int WaitStatus(const siginfo_t& ended) {
  return ended.si_code == CLD_EXITED ? (ended.si_status & 0xff) << 8 : ended.si_status;
}

[[noreturn]] void Supervise(const SupervisedStart& start) {
  ::prctl(PR_SET_NAME, "caisson-super");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::close(start.spawner_socket);
  std::optional<Command> command = ReadCommand(start.command);
  if (!command || command->argv.empty()) {
    Report(start.reports, Kind::kFailedToStart, EINVAL, static_cast<int>(StartStage::kProgram));
    ::_exit(1);
  }
  Prepared prepared = Prepare(*command);
  StartError error;
  const pid_t pid = StartCommand(start, prepared, error);
  if (error.error != 0) {
    Report(start.reports, Kind::kFailedToStart, error.error, static_cast<int>(error.stage));
    ::_exit(1);
  }
  for (const int fd : {start.command, start.input, start.output, start.errors}) ::close(fd);
  Report(start.reports, Kind::kStarted, 0, 0);
  for (;;) {
    // Told before it is reaped: whenever the supervisor is killed, either the report is there or
    // the agent inherits what it would have said.
    siginfo_t ended{};
    if (::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT) != 0) {
      if (errno != ECHILD) continue;
      Report(start.reports, Kind::kAllEnded, 0, 0);
      ::_exit(0);
    }
    if (ended.si_pid == pid) Report(start.reports, Kind::kEnded, WaitStatus(ended), 0);
    ::waitpid(ended.si_pid, nullptr, 0);
  }
}

}  // namespace

void StartSupervised(const SupervisedStart& start) {
  // Its parent is the agent; with this flag the exit signal is the spawner's own. Not clone3, which
  // filters of system calls refuse, since they cannot see its flags.
  const long pid = ::syscall(SYS_clone, CLONE_PARENT, 0, 0, 0, 0);
  if (pid == 0) Supervise(start);
  if (pid < 0) {
    Report(start.reports, Kind::kFailedToStart, errno, static_cast<int>(StartStage::kFork));
  }
}

}  // namespace caisson::agent::guest
