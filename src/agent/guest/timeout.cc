// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/timeout.h"

#include <getopt.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace caisson::agent::guest {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int kTimedOut = 124;
constexpr int kFailed = 125;
constexpr int kCannotExecute = 126;
constexpr int kNotFound = 127;
constexpr double kLongest = 1e9;  // about 30 years; beyond it a deadline is none
// What asks us to end is passed on.
constexpr std::array kPassedOn{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2};

constexpr char kHelp[] =
    "Usage: timeout [OPTION]... DURATION COMMAND [ARG]...\n"
    "Start COMMAND, and end it if it still runs after DURATION.\n\n"
    "  -s, --signal=SIGNAL    the signal to send (a name or a number; TERM)\n"
    "  -k, --kill-after=DURATION\n"
    "                         send KILL too, so long after the first signal\n"
    "      --foreground       let COMMAND use the terminal; only COMMAND itself is ended\n"
    "      --preserve-status  exit with COMMAND's status even when it timed out\n"
    "  -v, --verbose          tell on standard error of each signal\n\n"
    "DURATION is a number with an optional suffix: s (the default), m, h or d. 0: no limit.\n"
    "Exits with 124 when COMMAND timed out, 125 when timeout itself failed, 126 when COMMAND\n"
    "cannot be executed, 127 when it is not found, else with COMMAND's status.\n";

struct Request {
  int signal = SIGTERM;
  Seconds duration{0};
  Seconds kill_after{0};
  bool foreground = false;
  bool preserve_status = false;
  bool verbose = false;
  char** command = nullptr;
};

std::optional<Seconds> ReadDuration(const char* text) {
  char* end = nullptr;
  errno = 0;
  const double number = std::strtod(text, &end);
  if (end == text || std::isnan(number) || number < 0) return std::nullopt;
  double unit = 1;
  switch (*end) {
    case '\0':
      break;
    case 's':
      ++end;
      break;
    case 'm':
      unit = 60, ++end;
      break;
    case 'h':
      unit = 3600, ++end;
      break;
    case 'd':
      unit = 86'400, ++end;
      break;
    default:
      return std::nullopt;
  }
  if (*end != '\0') return std::nullopt;
  return Seconds(std::min(number * unit, kLongest));
}

std::optional<int> ReadSignal(std::string_view text) {
  char* end = nullptr;
  const std::string copy(text);
  const long number = std::strtol(copy.c_str(), &end, 10);
  if (end != copy.c_str() && *end == '\0') {
    if (number < 0 || number >= NSIG) return std::nullopt;
    return static_cast<int>(number);
  }
  std::string name = copy;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  if (name.starts_with("SIG")) name.erase(0, 3);
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* known = sigabbrev_np(signal);
    if (known != nullptr && name == known) return signal;
  }
  return std::nullopt;
}

std::string SignalName(int signal) {
  const char* known = sigabbrev_np(signal);
  return known != nullptr ? known : std::to_string(signal);
}

// Returns an exit code when there is nothing to run.
std::optional<int> ReadArguments(int argc, char** argv, Request& request) {
  constexpr std::array<option, 8> kOptions{{{"signal", required_argument, nullptr, 's'},
                                            {"kill-after", required_argument, nullptr, 'k'},
                                            {"foreground", no_argument, nullptr, 'f'},
                                            {"preserve-status", no_argument, nullptr, 'p'},
                                            {"verbose", no_argument, nullptr, 'v'},
                                            {"help", no_argument, nullptr, 'h'},
                                            {"version", no_argument, nullptr, 'V'},
                                            {nullptr, 0, nullptr, 0}}};
  const auto usage = [](const std::string& why) {
    std::fprintf(stderr, "timeout: %s\nTry 'timeout --help' for more information.\n", why.c_str());
    return kFailed;
  };
  for (int letter = 0;
       (letter = ::getopt_long(argc, argv, "+fk:ps:v", kOptions.data(), nullptr)) != -1;) {
    switch (letter) {
      case 'f':
        request.foreground = true;
        break;
      case 'p':
        request.preserve_status = true;
        break;
      case 'v':
        request.verbose = true;
        break;
      case 's': {
        const auto signal = ReadSignal(optarg);
        if (!signal) return usage("'" + std::string(optarg) + "': invalid signal");
        request.signal = *signal;
        break;
      }
      case 'k': {
        const auto duration = ReadDuration(optarg);
        if (!duration) return usage("invalid time interval '" + std::string(optarg) + "'");
        request.kill_after = *duration;
        break;
      }
      case 'h':
        std::fputs(kHelp, stdout);
        return 0;
      case 'V':
        std::puts("timeout (caisson) " CAISSON_VERSION);
        return 0;
      default:
        return usage("an option is not known");
    }
  }
  if (argc - optind < 2) return usage("missing operand");
  const auto duration = ReadDuration(argv[optind]);
  if (!duration) return usage("invalid time interval '" + std::string(argv[optind]) + "'");
  request.duration = *duration;
  request.command = argv + optind + 1;
  return std::nullopt;
}

class Timeout {
 public:
  explicit Timeout(const Request& request)
      : request_(request), next_signal_(request.signal), kill_after_(request.kill_after) {}

  int Run() {
    ::sigemptyset(&awaited_);
    ::sigaddset(&awaited_, SIGCHLD);
    for (const int signal : kPassedOn) ::sigaddset(&awaited_, signal);
    ::signal(SIGCHLD, SIG_DFL);  // ignored, it would leave no status
    ::sigprocmask(SIG_BLOCK, &awaited_, &before_);
    const pid_t parent = ::getpid();
    child_ = ::fork();
    if (child_ < 0) {
      std::fprintf(stderr, "timeout: fork: %s\n", std::strerror(errno));
      return kFailed;
    }
    if (child_ == 0) Execute(parent);
    // Here, too: who is first does not matter then.
    if (!request_.foreground) ::setpgid(child_, child_);
    if (request_.duration.count() > 0) SetDeadline(request_.duration);
    return Finish(Wait());
  }

 private:
  [[noreturn]] void Execute(pid_t parent) {
    // Nobody else would end it when we are killed.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kFailed);
    if (!request_.foreground) ::setpgid(0, 0);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    ::execvp(request_.command[0], request_.command);
    const int error = errno;
    std::fprintf(stderr, "timeout: failed to run command '%s': %s\n", request_.command[0],
                 std::strerror(error));
    ::_exit(error == ENOENT ? kNotFound : kCannotExecute);
  }

  void SetDeadline(Seconds from_now) {
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(from_now);
  }

  int Wait() {
    for (;;) {
      int status = 0;
      const pid_t ended = ::waitpid(child_, &status, WNOHANG);
      if (ended == child_) return status;
      siginfo_t info{};
      timespec left{};
      if (deadline_) {
        const auto rest = std::max(*deadline_ - Clock::now(), Clock::duration(0));
        const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(rest).count();
        left = {.tv_sec = nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000};
      }
      const int signal = ::sigtimedwait(&awaited_, &info, deadline_ ? &left : nullptr);
      if (signal < 0 && errno == EAGAIN) {
        Fire();
      } else if (signal > 0 && signal != SIGCHLD) {
        Send(signal);
        KillLater();
      }
    }
  }

  void Fire() {
    timed_out_ = true;
    if (request_.verbose) {
      std::fprintf(stderr, "timeout: sending signal %s to command '%s'\n",
                   SignalName(next_signal_).c_str(), request_.command[0]);
    }
    Send(next_signal_);
    deadline_.reset();
    KillLater();
  }

  void KillLater() {
    if (kill_after_.count() <= 0) return;
    next_signal_ = SIGKILL;
    SetDeadline(std::exchange(kill_after_, Seconds(0)));
  }

  void Send(int signal) const {
    const pid_t whom = request_.foreground ? child_ : -child_;
    ::kill(whom, signal);
    // What is stopped would not notice.
    if (signal != SIGKILL && signal != SIGCONT) ::kill(whom, SIGCONT);
  }

  int Finish(int status) const {
    if (timed_out_ && !request_.preserve_status) return kTimedOut;
    if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
    const int signal = WTERMSIG(status);
    if (!timed_out_) DieOf(signal);
    return 128 + signal;
  }

  // As the command died, without a core file of our own.
  static void DieOf(int signal) {
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::signal(signal, SIG_DFL);
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, signal);
    ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
    ::raise(signal);
  }

  const Request& request_;
  sigset_t awaited_{};
  sigset_t before_{};
  pid_t child_ = -1;
  int next_signal_;
  Seconds kill_after_;
  std::optional<Clock::time_point> deadline_;
  bool timed_out_ = false;
};

}  // namespace

int TimeoutMain(int argc, char** argv) {
  Request request;
  if (const auto code = ReadArguments(argc, argv, request)) return *code;
  return Timeout(request).Run();
}

}  // namespace caisson::agent::guest
