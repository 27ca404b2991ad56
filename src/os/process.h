// SPDX-License-Identifier: Apache-2.0
// A child process held by a pidfd, so that no signal ever reaches a recycled pid. The owner kills
// and reaps it: a ChildProcess that is destroyed takes its process with it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::os {

struct ExitStatus {
  int code = 0;    // when signal == 0
  int signal = 0;  // what ended the process
  bool operator==(const ExitStatus&) const = default;
};
// "exited with code 1", "was killed by SIGSYS".
std::string ToText(const ExitStatus& status);

class ChildProcess {
 public:
  ChildProcess() = default;
  ChildProcess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  ChildProcess(ChildProcess&&) noexcept = default;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  bool running() const { return pidfd_.valid(); }
  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable once the process has ended

  // SIGKILL; nothing when it has been reaped.
  void Kill();
  // Reaps. Empty when it has not ended within `timeout`. Afterwards running() is false.
  std::optional<ExitStatus> Wait(std::chrono::milliseconds timeout);
  // Gives the process up: it is neither killed nor reaped. Returns the pidfd.
  UniqueFd Release() { return std::move(pidfd_); }

 private:
  pid_t pid_ = -1;
  UniqueFd pidfd_;
};

// clone3(2) as fork with new namespaces: returns 0 in the child. The child of a process that has
// threads may make only async-signal-safe calls until it executes a program; glibc's own fork
// handlers do not run. With `cgroup`, the directory of a group of version 2, the child begins
// there. Fails with os.syscall.
struct CloneResult {
  pid_t pid = 0;
  UniqueFd pidfd;
};
Result<CloneResult> CloneWithNamespaces(std::uint64_t namespace_flags, int cgroup = -1);

// Private writable memory that a process had reserved at most, touched or not: its largest address
// space, less what it maps now that is no data. 0 when the process has ended.
std::uint64_t PeakDataBytes(pid_t pid);

}  // namespace caisson::os
