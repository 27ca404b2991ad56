// SPDX-License-Identifier: Apache-2.0
// Firecracker as the monitor (machine/microvm/monitor.h): asked by its API; the agent is behind its
// vsock.
#pragma once

#include <sys/types.h>

#include <memory>

#include "machine/microvm/monitor.h"
#include "machine/microvm/plan.h"
#include "os/fd.h"

namespace caisson::machine::firecracker {

// The jailer, which was started before the rights for it were lost: a child of this process, as
// Firecracker is once the jailer is through.
struct Jailer {
  pid_t pid = 0;
  os::UniqueFd words;  // what both say, to read
};

std::unique_ptr<microvm::Monitor> MakeMonitor(const microvm::Plan& plan, Jailer jailer);

}  // namespace caisson::machine::firecracker
