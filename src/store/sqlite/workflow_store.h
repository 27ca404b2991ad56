// SPDX-License-Identifier: Apache-2.0
// The embedded store of workflow runs: one SQLite database in WAL mode, which several processes of
// one host may use at once. A committed transaction survives the end of any process, and a power
// cut but for the last moments; with Durability::kFull these, too.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "store/workflows.h"

namespace caisson::store::sqlite {

enum class Durability : std::uint8_t { kNormal, kFull };

// Opens the file, or makes it, for its owner alone; its directory must exist. Brings tables of an
// older version up. Fails with store.version when a newer program made it, else as Rows do.
Result<std::unique_ptr<WorkflowStore>> OpenWorkflows(const std::string& path,
                                                     Durability durability);

// Copies a store that may be in use, as it is at one moment, to a new file. Fails with
// store.conflict when that exists.
Result<void> BackUp(const std::string& path, const std::string& copy);

}  // namespace caisson::store::sqlite
