// SPDX-License-Identifier: Apache-2.0
// Starts the agent of a machine with every wall up before its first instruction: namespaces of
// users, processes, mounts, IPC, host name and cgroups of its own, a network namespace that is
// given, the root, a few capabilities over its own namespace, no_new_privs, Landlock's scopes, the
// seccomp filter. In two steps, so that the dear part can be done before anybody asks for a
// machine. Uid 0 inside is `first_host_id` outside, and so on for kIdsPerMachine ids.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "machine/boot_child.h"
#include "machine/id_ranges.h"
#include "os/fd.h"
#include "os/process.h"

namespace caisson::machine::boot {

struct BootOptions {
  int program = -1;                      // the agent, open
  std::vector<std::string> arguments;    // argv; the program's name first
  std::vector<std::string> environment;  // NAME=value
  int listener = -1;                     // becomes kListenFd
  std::span<const os::UniqueFd> command_tasks;
  std::span<const os::UniqueFd> agent_tasks;
  int unified_group = -1;  // of the agent, version 2
  std::string network;     // path of its namespace
  std::uint32_t first_host_id = 0;
  int landlock = -1;  // a ruleset (os/landlock.h)
  std::span<const sock_filter> filter;
};

// Makes the root; gets the namespace of users whose ids it is for.
using BuildRoot = std::function<Result<os::UniqueFd>(int user_namespace)>;

// A machine whose walls stand, and that waits for its name. Killed and reaped when destroyed before
// it is started; ends with this process, too.
struct Prepared {
  os::ChildProcess process;
  os::UniqueFd control;
};

// Fails with jail.unavailable or os.syscall, and as `build_root`.
Result<Prepared> Prepare(const BootOptions& options, const BuildRoot& build_root);

// The same where caisson-container-init clones the process, in a container that an engine has made:
// it has connected as `control`, and `init` is its pid. The process is a child of that program,
// and not the caller's to reap.
Result<Prepared> PrepareIn(pid_t init, os::UniqueFd control, const BootOptions& options,
                           const BuildRoot& build_root);

struct Identity {
  std::string host_name;
  std::vector<std::pair<std::string, std::string>> files;  // path and content, written as its root
};

// The agent runs when this returns; it is the caller's to reap, and does not end with the caller.
Result<os::ChildProcess> Start(Prepared prepared, const Identity& identity);

}  // namespace caisson::machine::boot
