// SPDX-License-Identifier: Apache-2.0
#include "cli/block_policy.h"

#include <algorithm>
#include <cstdlib>

namespace caisson::cli {
namespace {

template <typename Target, typename Wish>
void Take(Target& target, const std::optional<Wish>& wish) {
  if (wish) target = static_cast<Target>(*wish);
}

// Makes room for a default that the operator has set. 0: no maximum.
template <typename Number>
void Raise(Number& maximum, Number value) {
  if (maximum != Number{}) maximum = value == Number{} ? Number{} : std::max(maximum, value);
}

}  // namespace

Result<block::Environment> ReadBlockEnvironment() {
  return block::ReadEnvironment([](const char* name) { return std::getenv(name); });
}

RuntimeWish ChooseBlockRuntime(const std::optional<std::string>& option,
                               const block::Environment& environment) {
  RuntimeWish wish;
  Take(wish.cpus, environment.cpus);
  wish.by_imports = option ? *option == "auto" : environment.auto_runtime;
  if (!option) Take(wish.id, environment.runtime);
  if (option) Take(wish.id, block::FindRuntimeId(*option));
  return wish;
}

isolate::ScriptLimits ChooseBlockLimits(const BlockLimitArguments& options,
                                        const block::Environment& environment,
                                        const RuntimeWish& runtime) {
  isolate::ScriptLimits limits;
  Take(limits.wall_clock, environment.timeout);
  Take(limits.pids, environment.pids);
  const bool is_wasm = runtime.by_imports || runtime.id == block::RuntimeId::kCpython;
  if (runtime.id != block::RuntimeId::kOci) Take(limits.memory_bytes, environment.heap_bytes);
  if (!is_wasm) Take(limits.memory_bytes, environment.container_memory);
  Take(limits.wall_clock, options.timeout);
  Take(limits.cpu, options.cpu_time);
  Take(limits.memory_bytes, options.memory);
  Take(limits.output_bytes, options.output);
  Take(limits.messages, options.messages);
  Take(limits.stream_bytes, options.stream);
  Take(limits.disk_bytes, options.disk);
  Take(limits.pids, options.pids);
  return limits;
}

Result<block::LimitPolicy> ChooseBlockPolicy(const BlockServeArguments& arguments,
                                             const block::Environment& environment,
                                             const RuntimeWish& runtime) {
  block::LimitPolicy policy;
  policy.defaults = ChooseBlockLimits(arguments.limits, environment, runtime);
  const isolate::ScriptLimits& defaults = policy.defaults;
  isolate::ScriptLimits& maximum = policy.maximum;
  Raise(maximum.wall_clock, defaults.wall_clock);
  Raise(maximum.memory_bytes, defaults.memory_bytes);
  Raise(maximum.output_bytes, defaults.output_bytes);
  Raise(maximum.stream_bytes, defaults.stream_bytes);
  Raise(maximum.disk_bytes, defaults.disk_bytes);
  Raise(maximum.pids, defaults.pids);
  Take(maximum.wall_clock, arguments.max_timeout);
  Take(maximum.memory_bytes, arguments.max_memory);
  Take(maximum.output_bytes, arguments.max_output);
  CAISSON_TRY(block::CheckPolicy(policy));
  return policy;
}

}  // namespace caisson::cli
