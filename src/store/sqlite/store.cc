// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/store.h"

#include "store/sqlite/database.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/transactions.h"

namespace caisson::store::sqlite {

Result<std::unique_ptr<Store>> Open(const std::string& path) {
  CAISSON_ASSIGN(auto writer, Database::Open(path));
  CAISSON_TRY(Migrate(*writer));
  return std::make_unique<SqliteTransactions<Rows, SqliteRows>>(path, std::move(writer));
}

}  // namespace caisson::store::sqlite
