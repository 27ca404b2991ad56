// SPDX-License-Identifier: Apache-2.0
// The memory of a machine whose QEMU has it as a private mapping of a file (preload/): what it has
// changed is found in the kernel's page map and written over a copy of that file, which is then the
// machine's whole memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/status.h"

namespace caisson::machine::microvm {

// Over `to`, which has what `file` has. The process must stand still, and be ours. Returns how many
// bytes were changed. Fails with machine.full, os.syscall.
Result<std::uint64_t> WriteChangedMemory(pid_t process, const std::string& file,
                                         const std::string& to);

}  // namespace caisson::machine::microvm
