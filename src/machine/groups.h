// SPDX-License-Identifier: Apache-2.0
// The cgroups of one machine, of version 1, 2, or a hybrid. The outer group has the agent, and
// `commands` below it what the agent starts: the limits are those of `commands`, and the agent has
// a reserve beside them, so that it still answers when the guest has used up everything. Not
// synchronised. An object only names directories: nothing is removed with it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "os/fd.h"

namespace caisson::machine {

struct GroupLimits {
  double cpus = 1;
  std::uint64_t memory_bytes = 0;
  std::uint64_t pids = 0;
};

class Groups {
 public:
  Groups() = default;
  // The directories that a machine of this name has here; makes nothing. Fails with
  // machine.unavailable when a controller, or every way to freeze, is missing.
  static Result<Groups> Plan(const std::string& name);

  // For the record. FromJson takes only directories whose last part is `name`.
  json::Value ToJson() const;
  static Result<Groups> FromJson(const json::Value& value, const std::string& name);

  // On failure nothing is left.
  Result<void> Make();
  Result<void> Limit(const GroupLimits& limits);

  // The version 2 directory that a process can be cloned into; invalid when there is none.
  Result<os::UniqueFd> OpenUnified() const;
  // Files into which a process writes "0" to get into the agent's, or the commands', groups. Beyond
  // what it is cloned into.
  Result<std::vector<os::UniqueFd>> OpenAgentTasks() const;
  Result<std::vector<os::UniqueFd>> OpenCommandTasks() const;

  // A container runtime that is started in the agent's groups makes groups of this machine's name
  // below them, for the agent: they are killed and removed as well. Whether a process is in such a
  // group, or the agent's, of every hierarchy.
  bool HaveAgent(pid_t pid) const;

  Result<void> Freeze();  // returns when all processes stand still
  Result<void> Thaw();
  // Kills every process, frozen ones as well, until none is left; then removes the directories.
  // Fine when there are none. Fails with os.syscall when processes do not end within `patience`.
  Result<void> Remove(std::chrono::milliseconds patience);
  // Kills without removing.
  Result<void> Kill(std::chrono::milliseconds patience);

  std::uint64_t MemoryBytes() const;
  std::uint64_t CpuNanoseconds() const;
  std::uint64_t Pids() const;
  std::uint64_t OomKills() const;

 private:
  struct Hierarchy {
    int version = 0;
    bool memory = false, cpu = false, pids = false, freezer = false;  // 2 always freezes
    std::string directory;                                            // of the outer group
    bool limits() const { return memory || cpu || pids; }
  };
  const Hierarchy* Unified() const;
  const Hierarchy* With(bool Hierarchy::* controller) const;
  Result<void> SetFrozen(bool frozen) const;
  bool KillOnce() const;

  std::vector<Hierarchy> hierarchies_;
};

}  // namespace caisson::machine
