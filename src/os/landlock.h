// SPDX-License-Identifier: Apache-2.0
// Landlock: a ruleset that allows nothing of what the kernel's version of it can forbid.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::os {

// The kernel's Landlock ABI (1 and up), 0 when it has none or has it switched off.
int LandlockAbi();

// Forbids signals to, and abstract sockets of, processes out of the domain, and nothing else: a
// ruleset that handles file rights would take away renaming across directories. Fails with
// os.syscall, before ABI 6 too.
Result<UniqueFd> MakeScopeRuleset();

// Forbids every file system access, TCP bind and connect (ABI 4) but to `connect_ports`, and
// signals and abstract sockets out of the domain (ABI 6). Fails with os.syscall.
Result<UniqueFd> MakeDenyAllRuleset(std::span<const std::uint16_t> connect_ports = {});

// Async-signal-safe; for the calling thread only, which needs no_new_privs. 0 or an errno.
int RestrictThread(int ruleset) noexcept;

}  // namespace caisson::os
