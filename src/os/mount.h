// SPDX-License-Identifier: Apache-2.0
// Mounts of the calling process's own mount namespace. Never call these in the host's.
#pragma once

#include <string>

#include "base/status.h"

namespace caisson::os {

// Which mount namespace this process is in: the text of /proc/self/ns/mnt, "mnt:[4026531841]".
Result<std::string> MountNamespaceId();

// Replaces the root of the whole process by an empty, read-only tmpfs and lets go of everything
// else; no path leads anywhere afterwards. Needs CAP_SYS_ADMIN in the namespace's user namespace.
Result<void> EnterEmptyRoot();

}  // namespace caisson::os
