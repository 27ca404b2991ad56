// SPDX-License-Identifier: Apache-2.0
// The system calls of a sealed gate, each with the reason why it is on the list.
#pragma once

#include <vector>

#include "os/seccomp.h"

namespace caisson::egress::gate {

// Call in the process that will be sealed.
std::vector<os::SyscallRule> GateSyscalls();

}  // namespace caisson::egress::gate
