// SPDX-License-Identifier: Apache-2.0
// The system calls of a machine, as data: what the programs of a whole computer need, from package
// managers to compilers and servers. Everything else is refused with EPERM; not on the list, among
// others: mounts and namespaces, ptrace and its kin, bpf, perf events, io_uring, userfaultfd,
// keyrings, kernel modules, clocks, and sockets other than UNIX, IPv4, IPv6 and routing queries.
#pragma once

#include <vector>

#include "os/seccomp.h"

namespace caisson::machine {

std::vector<os::SyscallRule> MachineSyscalls();

}  // namespace caisson::machine
