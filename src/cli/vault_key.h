// SPDX-License-Identifier: Apache-2.0
// The vault that a command uses.
#pragma once

#include <optional>

#include "base/status.h"
#include "cli/runs_arguments.h"
#include "vault/vault.h"

namespace caisson::cli {

// From the place that the command line names, else from the variables; nullopt when neither names
// one. From then on the process leaves no core file. Fails with vault.key.
Result<std::optional<vault::Key>> FindVaultKey(const VaultArguments& arguments);

// As FindVaultKey, but a key that is not there is an error.
Result<vault::Key> NeedVaultKey(const VaultArguments& arguments);

}  // namespace caisson::cli
