// SPDX-License-Identifier: Apache-2.0
// Starts a program of a root file system with every wall of a jail up before its first instruction:
// namespaces, cgroup, root (jail/root.h), no environment and no descriptors but the named ones, no
// capabilities, another user, resource limits, a seccomp filter. Unlike jail/spawn.h nothing is
// left for the program to do, so it need not be ours.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "jail/root.h"
#include "jail/spawn.h"
#include "jail/walls.h"
#include "os/cgroup.h"

namespace caisson::jail {

struct RootedOptions {
  const Root* root = nullptr;
  std::string program;                   // absolute, within the root
  std::vector<std::string> arguments;    // argv; the program's name first
  std::vector<std::string> environment;  // NAME=value
  int channel = -1;                      // becomes kChannelFd; the caller keeps its own
  int log = -1;                          // becomes stdout and stderr; the caller keeps its own
  os::CgroupLimits limits;
  std::uint64_t max_open_files = 1024;
  std::span<const sock_filter> filter;
  // A wall that is in here is not put up; kEmptyRoot stands for the root (the host's is kept).
  DangerouslyLeaveOut leave_out;
};

// All of the namespaces are mandatory, the one of users too: what the program starts in further
// ones depends on it. Landlock is not put up, as it would forbid the program to mount. The process
// ends when its channel does only if the program sees to that. Fails with jail.unavailable when a
// mandatory wall cannot be had, os.syscall otherwise.
Result<Jailed> SpawnInRoot(const RootedOptions& options);

}  // namespace caisson::jail
