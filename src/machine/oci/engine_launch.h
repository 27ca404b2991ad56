// SPDX-License-Identifier: Apache-2.0
// Starts machines in containers of Docker or Podman. The engine gives a container with one static
// program in it; that program is handed everything else, which the engine knows nothing of: root,
// disk, network, cgroups, walls (machine/boot.h). What the kernel says of the process that came out
// of it is checked, and not what the engine says. Thread-safe.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "machine/boot.h"
#include "machine/groups.h"
#include "machine/oci/engine.h"
#include "os/fd.h"

namespace caisson::machine::oci {

struct EngineMachine {
  std::string name;       // of its slot
  std::string directory;  // exists; for what the engine is given
  const Groups* groups = nullptr;
  int listener = -1;
  std::string network;  // path of its namespace
  std::uint32_t first_host_id = 0;
};

class EngineLauncher {
 public:
  // `agent` and `init` are programs. Fails as Engine::Open.
  static Result<EngineLauncher> Open(Engine engine, const std::string& agent);

  // The pid of the agent, which is behind all walls. On failure the container may be there.
  // Fails with oci.failed, oci.engine_silent; oci.engine_untrue when the engine and the kernel
  // differ; jail.unavailable.
  Result<pid_t> Launch(const EngineMachine& machine, const boot::BuildRoot& build_root,
                       const boot::Identity& identity) const;
  const Engine& engine() const { return engine_; }

 private:
  explicit EngineLauncher(Engine engine) : engine_(std::move(engine)) {}

  Engine engine_;
  os::UniqueFd agent_;
  os::UniqueFd landlock_;
  std::vector<sock_filter> filter_;
};

}  // namespace caisson::machine::oci
