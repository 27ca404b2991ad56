// SPDX-License-Identifier: Apache-2.0
// The walls around Firecracker and what stands beside it. Firecracker's own are put up by its
// jailer (a root with the machine's files, its id, a namespace of processes) and by itself (a
// filter of system calls); around both are namespaces of processes, mounts, network, IPC, host name
// and cgroups, and for what stands beside it the same root, no rights and a filter.
#pragma once

#include "machine/firecracker/monitor.h"
#include "machine/microvm/plan.h"

namespace caisson::machine::firecracker {

// As root, with one thread. Returns in the first process of the new namespace, behind all walls,
// with the jailer started; the caller's own process reports (kReportFd) and ends. On failure the
// report says what failed.
Jailer EnterWalls(const microvm::Plan& plan);

}  // namespace caisson::machine::firecracker
