// SPDX-License-Identifier: Apache-2.0
// Capabilities, securebits and no_new_privs of the calling thread. All but no_new_privs and
// securebits are per thread and are not inherited by threads that already run.
#pragma once

#include "base/status.h"

namespace caisson::os {

// Empties the bounding and the ambient set. Needs CAP_SETPCAP; without it the bounding set stays
// as it is, and the call fails.
Result<void> EmptyBoundingSet();
// Being uid 0 gives nothing any more, for good: SECBIT_NOROOT, NO_CAP_AMBIENT_RAISE, both locked,
// and KEEP_CAPS off and locked. Needs CAP_SETPCAP.
Result<void> LockSecurebits();
Result<void> SetNoNewPrivileges();
// Async-signal-safe. Clears effective, permitted and inheritable; 0 or an errno. Verifies.
int ClearCapabilities() noexcept;

}  // namespace caisson::os
