// SPDX-License-Identifier: Apache-2.0
// Starts the program of a node host: a channel at descriptor 3, its output in a pipe, an
// environment that is given whole, no capabilities, and a network of its own that has a loopback
// and nothing else. It is trusted with the host's files, not with its network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "os/fd.h"
#include "os/process.h"

namespace caisson::host {

inline constexpr int kChannelFd = 3;

struct ProcessOptions {
  std::vector<std::string> command;      // the program first, looked up in PATH
  std::vector<std::string> environment;  // NAME=value
  // A port of its loopback at which a socket listens before it starts; 0: none.
  std::uint16_t listen_port = 0;
};

struct HostProcess {
  os::ChildProcess process;
  os::UniqueFd channel;   // our end, does not block
  os::UniqueFd output;    // what it prints, does not block
  os::UniqueFd listener;  // at listen_port
};

// The process dies with the thread that calls this. Fails with host.no_isolation when there is no
// network namespace for it, host.unavailable when the program cannot be executed, os.syscall.
Result<HostProcess> StartProcess(const ProcessOptions& options);

}  // namespace caisson::host
