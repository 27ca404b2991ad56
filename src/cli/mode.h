// SPDX-License-Identifier: Apache-2.0
// The definition mode: how workflow files are taken in. Only `restricted` exists; `unrestricted`
// asked for by name is refused, and an unset mode means `restricted`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "workflow/code_runtime.h"

namespace caisson::cli {

enum class Mode { kRestricted };

struct ModeChoice {
  Mode mode = Mode::kRestricted;
  bool was_set = false;  // by option or environment
};

using Environment = std::function<const char*(const char*)>;

// --mode, then CAISSON_WORKFLOW_DEFINITION_MODE, then ORCHEO_WORKFLOW_DEFINITION_MODE; values are
// trimmed and case does not matter. Fails with cli.usage or cli.mode_unavailable.
Result<ModeChoice> ChooseMode(const std::optional<std::string>& option,
                              const Environment& environment);

// What a run says about it at its start.
std::string StartupLine(const ModeChoice& choice, const workflow::CodeRuntimes& runtimes);

}  // namespace caisson::cli
