// SPDX-License-Identifier: Apache-2.0
// The database of runs that a command uses.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "cli/runs_arguments.h"
#include "store/workflows.h"

namespace caisson::cli {

// As given, else $XDG_STATE_HOME/caisson/runs.db or ~/.local/state/caisson/runs.db, whose folders
// are made for this user alone. Fails with store.failed.
Result<std::string> RunStorePath(const RecordArguments& arguments);

Result<std::unique_ptr<store::WorkflowStore>> OpenRunStore(const RecordArguments& arguments);

}  // namespace caisson::cli
