// SPDX-License-Identifier: Apache-2.0
// Brings a call to the point where its script may run: job, descriptors, cgroup, walls.
#pragma once

#include <optional>

#include "base/status.h"
#include "isolate/native/options.h"
#include "isolate/native/zygote.h"
#include "isolate/script.h"
#include "os/cgroup.h"
#include "os/fd.h"

namespace caisson::isolate::native {

// A call that runs. Our ends of its channel and pipes do not block.
struct StartedCall {
  os::Cgroup cgroup;
  os::UniqueFd pidfd;
  os::UniqueFd channel;
  os::UniqueFd out;
  os::UniqueFd err;
  os::UniqueFd reply;  // the zygote says here how it ended
  pid_t pid = 0;
};

// Empty when the zygote is gone. Fails as RunCall does.
Result<std::optional<StartedCall>> StartCall(const Zygote& zygote, const NativeOptions& options,
                                             const ScriptJob& job);

// What a wall's failure in the call means for the caller.
std::unexpected<Status> WallFailure(const Reply& reply);

// Receives one reply, with its descriptor if it has one. Empty when the other side is gone or
// nothing comes within `timeout_ms`.
std::optional<Reply> ReceiveReply(int socket, int timeout_ms, os::UniqueFd* pidfd);

}  // namespace caisson::isolate::native
