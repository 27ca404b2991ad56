// SPDX-License-Identifier: Apache-2.0
// What the machines of a pool are: the request that each is made by, and the process that is
// started in it before it is handed out. Kept in the store as canonical JSON, so that two
// definitions that say the same are the same text.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "control/requests.h"

namespace caisson::control {

inline constexpr std::int64_t kMostWarmSeconds = 600;
inline constexpr std::size_t kMostWarmBytes = 64u << 10;  // of command, arguments and variables

// A managed process (agent/client.h) whose standard input stays open.
struct Warm {
  std::string command;  // looked up in PATH unless it has a slash
  std::vector<std::string> args;
  std::string cwd;  // empty: where commands of the sandbox start
  std::map<std::string, std::string> env;
  std::string ready;  // the line of its output that says that it is ready; empty: when it has begun
  std::int64_t timeout_seconds = 60;  // that it may take until then

  bool operator==(const Warm&) const = default;
};

struct PoolDefinition {
  CreateRequest sandbox;  // without name and pool
  std::optional<Warm> warm;
};

// Fails with control.bad_pool; the details are the JSON path of the field.
Result<void> CheckWarm(const Warm& warm);

std::string Write(const PoolDefinition& definition);
// What Write wrote. Fails with store.failed.
Result<PoolDefinition> ReadPoolDefinition(const std::string& text);

// `request`, which names a pool, with all that the pool says. Its own are the name, and where they
// are given the labels (beside the pool's), auto-pause and the time of deletion.
CreateRequest Merge(const PoolDefinition& definition, CreateRequest request);

}  // namespace caisson::control
