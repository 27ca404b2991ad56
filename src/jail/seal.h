// SPDX-License-Identifier: Apache-2.0
// The inner half of a jail, put up by the program inside it. Harden comes first, before the program
// loads anything: it needs nothing from the program. Seal comes last, when all files are open and
// all libraries loaded; from then on nothing but the allow list's system calls works, on any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "jail/spawn.h"
#include "jail/walls.h"
#include "os/seccomp.h"

namespace caisson::jail {

struct SealOptions {
  std::vector<os::SyscallRule> syscalls;
  std::uint64_t max_threads = 64;
  std::uint64_t max_open_files = 0;  // 0: no new descriptor at all
  std::uint64_t max_data_bytes = 0;  // private writable memory; 0: as inherited
  // That Landlock lets TCP go to, for who has a network.
  std::vector<std::uint16_t> connect_ports;
};

// no_new_privs, bounding set, securebits, resource limits that the program can live with. Call with
// one thread. Returns the walls that stand or, if the ticket allows it, do not; else fails with
// jail.unavailable.
Result<std::vector<WallReport>> Harden(const SealTicket& ticket);

// Empty root, another user, capabilities, Landlock, the last limits, seccomp. Descriptors 0 to 2
// become /dev/null. Fails with jail.unavailable when a mandatory wall cannot be put up (the process
// must then end: it is half sealed), or when a descriptor leads out: a directory or a socket other
// than kChannelFd.
Result<std::vector<WallReport>> Seal(const SealTicket& ticket, const SealOptions& options);

}  // namespace caisson::jail
