// SPDX-License-Identifier: Apache-2.0
// The environment variables that operators of the Python block know (PYTHON_SANDBOX_...), read once
// and refused when they are malformed, in the words that clients may match.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/status.h"
#include "block/libraries.h"

namespace caisson::block {

struct Environment {
  std::optional<RuntimeId> runtime;  // PYTHON_SANDBOX_MODE; none when it is `auto` or unset
  bool auto_runtime = false;         // it is `auto`
  std::optional<std::chrono::milliseconds> timeout;  // _TIMEOUT_MS
  std::optional<std::string> image;                  // _IMAGE, of the container
  std::optional<std::uint64_t> container_memory;     // _MEMORY, bytes
  std::optional<double> cpus;                        // _CPUS, of the container
  std::optional<std::uint32_t> pids;                 // _PIDS
  std::optional<std::uint64_t> heap_bytes;           // _HEAP_MB, of WebAssembly
};

// Null when a variable is not set; an empty one counts as not set, save for the timeout.
using GetVariable = std::function<const char*(const char*)>;

// Fails with block.environment.
Result<Environment> ReadEnvironment(const GetVariable& get);

}  // namespace caisson::block
