// SPDX-License-Identifier: Apache-2.0
// The socket at which a machine's agent takes connections: a file in the machine's directory, which
// only the helper can reach.
#pragma once

#include <string>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::machine {

// In the place of an earlier one. `directory` may have a longer path than addresses do.
Result<os::UniqueFd> ListenForAgent(const std::string& directory);
// Never waits. Fails with machine.agent_lost.
Result<os::UniqueFd> ConnectToAgent(const std::string& directory);
// The same for a socket that the agent has made itself, on a disk that the guest writes: no link is
// followed, and no other mount reached. `path` is relative to the directory `root`.
Result<os::UniqueFd> ConnectToAgentIn(int root, const std::string& path);
// Wakes an agent that has let the socket at `path` go (agent/guest/entrance.h), likewise.
Result<void> WakeAgentIn(int root, const std::string& path);

}  // namespace caisson::machine
