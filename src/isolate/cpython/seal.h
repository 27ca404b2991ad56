// SPDX-License-Identifier: Apache-2.0
// The system calls of a sealed worker that hosts this executor, beside those of every worker.
#pragma once

#include <vector>

#include "os/seccomp.h"

namespace caisson::isolate::cpython {

// `pagemap` is CPythonExecutor::pagemap_descriptor(); nothing is added for -1.
std::vector<os::SyscallRule> SealSyscalls(int pagemap);

}  // namespace caisson::isolate::cpython
