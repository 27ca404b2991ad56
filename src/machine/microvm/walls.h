// SPDX-License-Identifier: Apache-2.0
// The walls around one virtual machine: caisson-vmm and QEMU. Put up by caisson-vmm itself, before
// it looks at anything but its plan: namespaces of processes, mounts, network (none), IPC, host
// name and cgroups, a root with QEMU's libraries and the machine's own files, an id of its own, no
// capabilities, no new privileges, limits, a seccomp filter.
#pragma once

#include "base/status.h"
#include "machine/microvm/plan.h"

namespace caisson::machine::microvm {

// As root, with one thread. Returns in the first process of the new namespace, behind all walls;
// the caller's own process reports (kReportFd) and ends. On failure the report says what failed.
void EnterWalls(const Plan& plan);

}  // namespace caisson::machine::microvm
