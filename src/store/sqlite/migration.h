// SPDX-License-Identifier: Apache-2.0
// How a database comes to the tables that a program expects: by steps, of which it says in
// user_version how many it has had.
#pragma once

#include <span>

#include "store/sqlite/database.h"

namespace caisson::store::sqlite {

// Takes the steps that are missing, in one transaction. Only ever add to the end of `steps`: files
// out there have had the first ones. Fails with store.version when the file comes from a newer
// program.
Result<void> TakeSteps(Database& database, std::span<const char* const> steps);

}  // namespace caisson::store::sqlite
