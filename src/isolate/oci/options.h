// SPDX-License-Identifier: Apache-2.0
// What a container runtime of scripts is made of.
#pragma once

#include <optional>
#include <string>

#include "jail/interpreter_syscalls.h"
#include "machine/oci/policy.h"
#include "machine/oci/runtime.h"

namespace caisson::isolate::oci {

// Leave out the guard of runtimes/python, or the filter that closes what starting the interpreter
// needed. For tests of the boundary.
struct DangerouslyUnguarded {
  explicit DangerouslyUnguarded() = default;
};
struct DangerouslyWithoutScriptFilter {
  explicit DangerouslyWithoutScriptFilter() = default;
};

struct OciOptions {
  machine::oci::Runtime runtime;  // as ProbeRuntime gave it
  std::string state;              // a folder; see machine::oci::State
  std::string root;               // runc and runsc: directory of the root file system
  std::string image;              // Docker and Podman: id of the image
  std::string python = "python3";
  double cpus = 1;
  std::optional<jail::AllowProcesses> processes;  // scripts may start processes
  std::optional<DangerouslyUnguarded> unguarded;
  std::optional<DangerouslyWithoutScriptFilter> without_script_filter;
  machine::oci::DangerouslyWithout without;
};

}  // namespace caisson::isolate::oci
