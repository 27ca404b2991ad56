// SPDX-License-Identifier: Apache-2.0
// The system calls of an interpreter that runs unreviewed scripts, as data: each with the reason
// why it is needed. Everything else is refused with EPERM, so that a script gets a PermissionError.
// Not on the list, among others: sockets of every family (AF_VSOCK too), ptrace and its kin,
// io_uring, userfaultfd, keyrings, bpf, perf events, mounts, and everything that makes a namespace.
#pragma once

#include <optional>
#include <vector>

#include "jail/walls.h"
#include "os/seccomp.h"

namespace caisson::jail {

// Descriptors below this are the script's own. The host's channel stands at it, where a script's
// write, dup or fcntl cannot reach it: only writev may.
inline constexpr int kFirstHostFd = 512;

// Lets a script start processes: fork, execute programs, signal and await them.
struct AllowProcesses {
  explicit AllowProcesses() = default;
};

std::vector<os::SyscallRule> ScriptSyscalls(const std::optional<AllowProcesses>& processes);

// Of the interpreter that scripts are forked from, which runs trusted code alone: also what makes
// and walls in a child, and executing the interpreter itself.
std::vector<os::SyscallRule> ZygoteSyscalls(const std::optional<AllowProcesses>& processes);

// Of a container: what starts there is the interpreter, by a runtime that loads this filter just
// before, and our harness, which loads that of ScriptSyscalls before the script. `with_init`: the
// runtime puts an init before the interpreter, which starts it and waits for it.
std::vector<os::SyscallRule> ContainerSyscalls(const std::optional<AllowProcesses>& processes,
                                               bool with_init);

}  // namespace caisson::jail
