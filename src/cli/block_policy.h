// SPDX-License-Identifier: Apache-2.0
// What options and environment (PYTHON_SANDBOX_...) come to for blocks: options win.
#pragma once

#include <optional>

#include "base/status.h"
#include "block/environment.h"
#include "block/limits.h"
#include "cli/block_arguments.h"

namespace caisson::cli {

// The variables of this process. Fails with block.environment.
Result<block::Environment> ReadBlockEnvironment();

struct RuntimeWish {
  block::RuntimeId id = block::RuntimeId::kCpython;
  bool by_imports = false;  // auto
  double cpus = 1;          // that a run may use, where it may use more than one
};
RuntimeWish ChooseBlockRuntime(const std::optional<std::string>& option,
                               const block::Environment& environment);

isolate::ScriptLimits ChooseBlockLimits(const BlockLimitArguments& options,
                                        const block::Environment& environment,
                                        const RuntimeWish& runtime);

// Maxima below the defaults fail with block.limit_too_high; those that were not set give way.
Result<block::LimitPolicy> ChooseBlockPolicy(const BlockServeArguments& arguments,
                                             const block::Environment& environment,
                                             const RuntimeWish& runtime);

}  // namespace caisson::cli
