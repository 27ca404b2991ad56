// SPDX-License-Identifier: Apache-2.0
// The outer half of a jail: starts a program in new namespaces and a cgroup, without environment
// and with no descriptors but the named ones. The program is ours and trusted until it calls Seal
// (jail/seal.h), which puts up the inner half. What the walls could not be made of is in the
// report.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "jail/walls.h"
#include "os/cgroup.h"
#include "os/fd.h"
#include "os/process.h"

namespace caisson::jail {

// The descriptor under which the program finds the one that it was given.
inline constexpr int kChannelFd = 3;

// What the program must be told to seal itself; passed as one word of its command line.
struct SealTicket {
  WallSet standing;   // the namespaces that it is in
  WallSet leave_out;  // DangerouslyLeaveOut
  bool allow_unjailed = false;
  std::string outer_mount_namespace;

  std::string ToText() const;
  static Result<SealTicket> FromText(std::string_view text);
};

struct SpawnOptions {
  std::string executable = "/proc/self/exe";
  std::vector<std::string> arguments;  // argv; the program's name first
  // Runs in the child instead of a program, with its result as exit code. Only for a process with
  // one thread.
  int (*entry)(const SealTicket&) = nullptr;
  int channel = -1;  // becomes kChannelFd; the caller keeps its own
  os::CgroupLimits limits;
  std::optional<AllowUnjailed> allow_unjailed;  // empty: a mandatory wall is missing -> no process
  DangerouslyLeaveOut leave_out;
};

// Removes the process, then its cgroup, when destroyed.
struct Jailed {
  os::Cgroup cgroup;
  os::ChildProcess process;
  std::vector<WallReport> walls;  // those of this half
};

// The ticket's text is appended to `arguments`. The process dies with the *thread* that calls this
// (PR_SET_PDEATHSIG), so call it from one that lives as long. Fails with jail.unavailable when a
// mandatory wall cannot be had, os.syscall otherwise.
Result<Jailed> Spawn(const SpawnOptions& options);

}  // namespace caisson::jail
