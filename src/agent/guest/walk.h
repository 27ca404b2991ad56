// SPDX-License-Identifier: Apache-2.0
// Paths step by step, for kernels without openat2(2), as gVisor's: what the kernel would resolve in
// one call, and as safely, since each step is taken from a descriptor and follows no link by
// itself.
#pragma once

#include <string>

#include "os/fd.h"

namespace caisson::agent::guest {

// As openat2 with RESOLVE_NO_MAGICLINKS, and RESOLVE_NO_XDEV if `one_device`, without O_CREAT: -1
// and errno.
os::UniqueFd WalkPath(int folder, const std::string& path, int flags, bool one_device);

}  // namespace caisson::agent::guest
