// SPDX-License-Identifier: Apache-2.0
// The options of the C API's functions (include/caisson.h), from their JSON text. A member that is
// not known, or of another form, fails with library.options, which names it.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cli/arguments.h"
#include "graph/run.h"
#include "json/value.h"
#include "workflow/compiler.h"

namespace caisson::capi {

struct EngineOptions {
  cli::IsolationArguments isolation;
  std::optional<std::string> store;
  bool is_durable = false;  // each step waits for the disk
};

// What a run is given anew each time that it is begun or gone on with.
struct CarryOptions {
  std::optional<json::Value> config;
  std::vector<std::pair<std::string, std::string>> credentials;
  std::vector<std::string> endpoints;
  bool enforce_node_policy = true;
};

struct RunOptions {
  CarryOptions carry;
  graph::Policy policy = graph::Policy::kDrop;
  isolate::Limits limits;
  std::optional<std::chrono::milliseconds> timeout;
  std::size_t state_bytes = graph::kDefaultStateBytes;
  workflow::CodeRuntimes runtimes;
  std::string run_id;
  std::string name = "workflow";
};

struct CallOptions {
  std::string node_id = "body";
  isolate::Limits limits;
};

// `text` may be empty: no options. `most` holds the engine's limits: the default of each, and the
// most of those that its workers were made for (memory_bytes, heap_bytes).
Result<workflow::CompileOptions> ReadCompileOptions(std::string_view text);
Result<EngineOptions> ReadEngineOptions(std::string_view text);
Result<RunOptions> ReadRunOptions(std::string_view text, const isolate::Limits& most);
Result<CarryOptions> ReadResumeOptions(std::string_view text);
Result<CallOptions> ReadCallOptions(std::string_view text, const isolate::Limits& most);

}  // namespace caisson::capi
