// SPDX-License-Identifier: Apache-2.0
// The static check of a script for a runtime: syntax, imports, a missing done. What it calls an
// error will fail when the script runs; what may fail is a warning.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "block/libraries.h"
#include "block/script_facts.h"

namespace caisson::block {

enum class Severity : std::uint8_t { kError, kWarning };

struct Finding {
  ErrorCode code;
  Severity severity = Severity::kError;
  SourceSpan span;
  std::string message;
  std::string hint;
};

// For one runtime; without one, for any that fits (`auto`). In the order of the source.
std::vector<Finding> CheckScript(const ScriptFacts& facts, std::optional<RuntimeId> runtime);

// The certain import that keeps a script from running in `runtime`, if there is one: a library of
// the list that the runtime lacks, or a refused module. Of modules that nobody knows the guest
// speaks itself.
std::optional<Finding> FindMissingImport(const ScriptFacts& facts, RuntimeId runtime);

// Whether `runtime` has every certain import and can read the syntax, as far as can be told.
bool Fits(const ScriptFacts& facts, RuntimeId runtime);

}  // namespace caisson::block
