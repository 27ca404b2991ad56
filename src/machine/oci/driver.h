// SPDX-License-Identifier: Apache-2.0
// Machines that are containers of runsc (gVisor: a kernel in user space stands between the guest
// and the host's), of runc (walls of the host's kernel, put up by another program than the jail's),
// or of Docker or Podman, where a user has them (the jail's walls, inside a container of theirs).
// Needs root.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "machine/local.h"
#include "machine/oci/runtime.h"
#include "machine/oci/workshop.h"

namespace caisson::machine::oci {

// Finds the runtime that is to be used: "runsc", "runc", "podman" or "docker", or "auto", which
// takes runsc where it is and works, else runc. Never another one than was named. Fails with
// oci.unavailable, which says what is missing, machine.invalid for another word.
Result<Runtime> ChooseRuntime(std::string_view name);

struct OciOptions {
  WorkshopOptions workshop;
  Runtime runtime;
  std::size_t prepared = 8;  // machines of runc that wait, of each kind
  std::size_t threads = 2;   // that make them
  // Told when one cannot be made (machine/pool.h); may be empty.
  std::function<void(const Status&)> not_prepared;
};

// Fails with machine.unavailable, which says what is missing, oci.unavailable, and machine.state.
Result<std::unique_ptr<LocalDriver>> OpenOci(const OciOptions& options, SharedParts parts);

}  // namespace caisson::machine::oci
