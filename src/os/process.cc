// SPDX-License-Identifier: Apache-2.0
#include "os/process.h"

#include <linux/sched.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "os/syscall_error.h"

namespace caisson::os {

std::string ToText(const ExitStatus& status) {
  if (status.signal == 0) return "exited with code " + std::to_string(status.code);
  const char* name = sigabbrev_np(status.signal);
  return name != nullptr ? std::string("was killed by SIG") + name
                         : "was killed by signal " + std::to_string(status.signal);
}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    Kill();
    if (running()) Wait(std::chrono::milliseconds(10'000));
    pid_ = other.pid_;
    pidfd_ = std::move(other.pidfd_);
  }
  return *this;
}

ChildProcess::~ChildProcess() {
  Kill();
  if (running()) Wait(std::chrono::milliseconds(10'000));
}

void ChildProcess::Kill() {
  if (running()) ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
}

std::optional<ExitStatus> ChildProcess::Wait(std::chrono::milliseconds timeout) {
  if (!running()) return std::nullopt;
  pollfd event{pidfd_.get(), POLLIN, 0};
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    const int ready = ::poll(&event, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready > 0) break;
    if (ready == 0 || errno != EINTR) return std::nullopt;
  }
  int raw = 0;
  pid_t pid = 0;
  // By pid and not P_PIDFD: the child is ours and not reaped, so its pid cannot be another's.
  do {
    pid = ::waitpid(pid_, &raw, 0);
  } while (pid < 0 && errno == EINTR);
  pidfd_.Reset();
  if (pid != pid_) return ExitStatus{.code = -1, .signal = 0};
  if (WIFSIGNALED(raw)) return ExitStatus{.code = 0, .signal = WTERMSIG(raw)};
  return ExitStatus{.code = WEXITSTATUS(raw), .signal = 0};
}

Result<CloneResult> CloneWithNamespaces(std::uint64_t namespace_flags, int cgroup) {
  int pidfd = -1;
  clone_args args{};
  args.flags = namespace_flags | CLONE_PIDFD;
  args.pidfd = reinterpret_cast<std::uintptr_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  if (cgroup >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(cgroup);
  }
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid < 0) return SyscallError("clone3 with new namespaces");
  return CloneResult{static_cast<pid_t>(pid), UniqueFd(pid == 0 ? -1 : pidfd)};
}

std::uint64_t PeakDataBytes(pid_t pid) {
  const auto status = ReadSmallFile("/proc/" + std::to_string(pid) + "/status");
  if (!status) return 0;
  const auto bytes = [&status](std::string_view field) -> std::uint64_t {
    const std::size_t at = status->find(field);
    if (at == std::string::npos) return 0;
    return std::strtoull(status->c_str() + at + field.size(), nullptr, 10) * 1024;
  };
  const std::uint64_t other = bytes("\nVmSize:") - bytes("\nVmData:");
  const std::uint64_t peak = bytes("\nVmPeak:");
  return peak - std::min(peak, other);
}

}  // namespace caisson::os
