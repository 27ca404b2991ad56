// SPDX-License-Identifier: Apache-2.0
// The helper's end of one virtual machine's process (caisson-vmm): starts it, and asks it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "machine/microvm/plan.h"
#include "os/fd.h"

namespace caisson::machine::microvm {

struct Started {
  pid_t pid = 0;
  os::UniqueFd pidfd;
};

// Starts `program` with sockets in `directory`. It belongs to the cgroups of `tasks` from its first
// instruction on, goes on when this process ends, and is in nobody's way: its parent is not we.
// `tap` may be -1. Fails with machine.vm_failed.
Result<Started> StartVmm(const std::string& program, const std::string& directory, Plan plan,
                         std::span<const os::UniqueFd> tasks, int tap);

// Asks the process of the machine in `directory`. Fails with machine.vm_failed, machine.full,
// machine.agent_lost, by its words, which are not believed but told.
Result<Reply> AskVmm(const std::string& directory, const Request& request,
                     std::chrono::milliseconds patience);

}  // namespace caisson::machine::microvm
