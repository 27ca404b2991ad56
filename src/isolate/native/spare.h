// SPDX-License-Identifier: Apache-2.0
// A call before it has a script: forked, in its namespaces and its cgroup, waiting. What takes long
// is done then, so one is kept in stock for the next script.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>

#include "base/status.h"
#include "isolate/native/options.h"
#include "isolate/native/wire.h"
#include "isolate/native/zygote.h"
#include "isolate/script.h"
#include "os/cgroup.h"
#include "os/fd.h"

namespace caisson::isolate::native {

// Its process ends when `socket` does, unless it has got a script; its cgroup can be removed then.
struct Spare {
  os::CgroupLimits limits;
  os::Cgroup cgroup;
  os::UniqueFd pidfd;
  os::UniqueFd socket;
  pid_t pid = 0;
};
// Empty when the zygote is gone. Fails with jail.unavailable or os.syscall.
Result<std::optional<Spare>> MakeSpare(const Zygote& zygote, const os::CgroupLimits& limits);
os::CgroupLimits GroupLimits(const ScriptLimits& limits, const NativeOptions& options);

// A call that has its script. Our ends of its channel and pipes do not block.
struct StartedCall {
  Spare spare;
  os::UniqueFd channel;
  os::UniqueFd out;
  os::UniqueFd err;
};
// Empty when the spare's process is gone; nothing of the script has then run.
Result<std::optional<StartedCall>> StartScript(Spare spare, const NativeOptions& options,
                                               const ScriptJob& job);
// Until the process has ended, but not for ever.
void Await(const Spare& spare);

// What a wall's failure in the call means for the caller.
std::unexpected<Status> WallFailure(const Reply& reply);

// Receives one reply, with its descriptor if it has one. Empty when the other side is gone or
// nothing comes within `timeout_ms`.
std::optional<Reply> ReceiveReply(int socket, int timeout_ms, os::UniqueFd* pidfd);
// False when the other side is gone.
bool SendWithFds(int socket, const void* message, std::size_t size, std::span<const int> fds);

}  // namespace caisson::isolate::native
