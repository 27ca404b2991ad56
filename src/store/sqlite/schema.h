// SPDX-License-Identifier: Apache-2.0
// The tables, as the steps that lead to them. A database says in user_version how many it has had.
#pragma once

#include "store/sqlite/database.h"

namespace caisson::store::sqlite {

// Takes the steps that are missing, in one transaction. Fails with store.version when the file
// comes from a newer program.
Result<void> Migrate(Database& database);

}  // namespace caisson::store::sqlite
