// SPDX-License-Identifier: Apache-2.0
// The helper's end of one virtual machine's process (caisson-vmm): starts it, and asks it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

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

// Asks the process of the machine in `directory`; `text` comes with the request. The outcome is
// kDone or kUnquiet. Fails with machine.vm_failed, machine.full, machine.agent_lost, by its words,
// which are not believed but told.
Result<Reply> AskVmm(const std::string& directory, Request request,
                     std::chrono::milliseconds patience, std::string_view text = {});

// Processor time that a process which was started so and its child QEMU have used.
std::uint64_t ProcessorNanoseconds(pid_t process);

// The text of an answer, as far as it is one.
std::string WordsOf(const Reply& reply);

}  // namespace caisson::machine::microvm
