// SPDX-License-Identifier: Apache-2.0
// The system calls of QEMU and of what stands beside it, as data. QEMU puts its own list of what is
// denied before that (-sandbox). No namespaces and mounts, no sockets but UNIX ones, no bpf,
// io_uring, userfaultfd, keyrings, modules and clocks, and no programs but the one that is started.
#pragma once

#include <vector>

#include "os/seccomp.h"

namespace caisson::machine::microvm {

std::vector<os::SyscallRule> VmSyscalls();

}  // namespace caisson::machine::microvm
