// SPDX-License-Identifier: Apache-2.0
// What a native runtime is made of: a root file system, the library sets to prepare, and grants.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jail/interpreter_syscalls.h"
#include "jail/walls.h"

namespace caisson::isolate::native {

// Modules imported before any script runs; one zygote each.
struct LibrarySet {
  std::string name;                  // "pandas"
  std::vector<std::string> imports;  // {"numpy", "pandas"}
  // Also do work of the usual kind, so that no script pays for what its libraries do once.
  bool warm_up = true;
};

// Leave out the guard of runtimes/python, which refuses politely what the boundary refuses anyway.
// For tests of the boundary.
struct DangerouslyUnguarded {
  explicit DangerouslyUnguarded() = default;
};

struct NativeOptions {
  std::string root;                         // directory of the root file system
  std::string python = "/usr/bin/python3";  // within it
  std::string tenant;                       // zygotes are never shared between tenants
  // Tried in order: the first one that has all that a job imports, else the one that has most of
  // it. Without any, there is one set that imports nothing.
  std::vector<LibrarySet> sets;
  std::vector<std::string> environment;     // NAME=value, for the imports; scripts do not see it
  double cpus = 1;                          // of a call; 0: no limit
  std::uint64_t zygote_bytes = 2ull << 30;  // memory that the imports of one set may take
  std::size_t spares = 1;                   // calls that are forked ahead of their scripts, per set
  std::chrono::milliseconds import_timeout{120'000};
  std::optional<jail::AllowProcesses> processes;  // scripts may start processes
  std::optional<DangerouslyUnguarded> unguarded;
  jail::DangerouslyLeaveOut leave_out;
};

}  // namespace caisson::isolate::native
