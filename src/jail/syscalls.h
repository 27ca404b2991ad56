// SPDX-License-Identifier: Apache-2.0
// The system calls of a sealed isolate worker, each with the reason why it is on the list.
#pragma once

#include <vector>

#include "os/seccomp.h"

namespace caisson::jail {

// What a thread of a WebAssembly engine needs whose code is compiled and mapped already, and that
// talks on `channel` only. Call in the process that will be sealed (its pid is part of the rules).
std::vector<os::SyscallRule> WorkerSyscalls(int channel);

}  // namespace caisson::jail
