// SPDX-License-Identifier: Apache-2.0
// The words of caisson-isolate's command line: what a worker must know before its first call. A
// worker has no environment, so the variables that say where artifact and cache are come this way.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "isolate/runtime.h"

namespace caisson::cli {

struct WorkerSetup {
  isolate::Limits limits;  // memory_bytes and heap_bytes
  std::vector<std::pair<std::string, std::string>> variables;
};

// From `limits` and the environment of this process.
std::vector<std::string> WorkerWords(const isolate::Limits& limits);

// Fails with cli.usage.
Result<WorkerSetup> ParseWorkerWords(const std::vector<std::string>& words);

}  // namespace caisson::cli
