// SPDX-License-Identifier: Apache-2.0
// Starts commands from a small process of its own. That one has joined the commands' cgroups once
// (moving each command costs tens of milliseconds in cgroup v1) and has none of the agent's
// reserves; and a start that hangs in the kernel does not hang the agent.
//
// Each command gets a supervisor between itself and the agent: a subreaper, so that everything the
// command starts stays below it, whatever that does to its sessions and parents. It tells of starts
// and ends by a pipe, and ends itself when nothing is left below it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/guest/failure.h"
#include "agent/messages.h"
#include "os/fd.h"

namespace caisson::agent::guest {

// What the supervisor writes to the pipe, each in one piece.
struct SupervisorReport {
  enum class Kind : std::uint32_t {
    kBegun,  // a: pid of the command, b: of the supervisor; it executes nothing yet
    kStarted,
    kFailedToStart,  // a: errno, b: StartStage
    kEnded,          // a: wait status of the command
    kAllEnded,       // nothing of it is left; the supervisor ends
  };
  Kind kind;
  std::int32_t a;
  std::int32_t b;
};
enum class StartStage : std::int32_t { kFork, kTerminal, kDirectory, kProgram };

// The command's ends of its streams; one terminal for all three has input only.
struct CommandStreams {
  os::UniqueFd input;
  os::UniqueFd output;
  os::UniqueFd errors;
};

// What commands get of the resource limits.
struct CommandLimits {
  std::uint64_t open_files = 0;  // soft
  std::uint64_t processes = 0;   // soft and hard; 0: as they are
  // Whether commands are without what their agent may need to name a copy of its machine.
  bool drop_agents_capabilities = false;
};

class Spawner {
 public:
  // `cgroup_procs`: files that a process joins a cgroup by when it writes "0" to them. They stay
  // the caller's.
  Spawner(std::vector<int> cgroup_procs, const CommandLimits& limits)
      : cgroup_procs_(std::move(cgroup_procs)), limits_(limits) {}

  // The reports come through `reports`, whose end tells that the supervisor is gone.
  Attempt<void> Start(const Command& command, CommandStreams streams, os::UniqueFd reports);
  // The process of this pid is gone; Start makes another one.
  void OnReaped(pid_t pid) {
    if (pid == pid_) pid_ = -1;
  }
  // Starts the process, if there is none. Fails when it cannot join its cgroups: commands must not
  // run outside of them.
  Attempt<void> Prepare();

 private:
  Attempt<void> SendStart(const CommandStreams& streams, int command, int reports);

  std::vector<int> cgroup_procs_;
  CommandLimits limits_;
  pid_t pid_ = -1;
  os::UniqueFd socket_;
};

}  // namespace caisson::agent::guest
