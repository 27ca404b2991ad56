// SPDX-License-Identifier: Apache-2.0
// The config.json (OCI runtime specification) of a machine: a whole computer whose first process is
// our agent, root inside and nobody outside. Walls are those of the jail where runc puts them up;
// under runsc the guest's kernel is gVisor's, and what the host's kernel would refuse it refuses.
// Pure: nothing here looks at the host.
#pragma once

#include <cstdint>
#include <string>

#include "json/value.h"
#include "machine/oci/runtime.h"

namespace caisson::machine::oci {

// Where the agent finds things inside.
inline constexpr const char* kAgentInside = "/run/caisson/agent";
inline constexpr const char* kSocketPlace = "/run/caisson/host";  // a directory
inline constexpr const char* kSocketName = "agent.sock";
// What is there of the machine's disk, beside those of its root.
inline constexpr const char* kSocketDirectory = "agent";

struct MachineBundle {
  RuntimeKind kind = RuntimeKind::kRunc;  // or kRunsc
  std::string root;                       // directory of the machine's root, which can be written
  std::string agent;                      // program of the host
  std::string host_name;
  std::uint32_t first_host_id = 0;
  std::string network;    // path of the namespace; empty: one of its own with a loopback alone
  std::string cgroup;     // for runc: a name, below the groups that it is started in
  int command_tasks = 0;  // for runc: descriptors 4, 5, …, by which commands get into their groups
  std::string socket_directory;  // for runsc: of the host, the agent makes its socket there
  std::uint64_t processes = 0;   // for runsc: of one user
};

json::Value MachineConfig(const MachineBundle& bundle);

}  // namespace caisson::machine::oci
