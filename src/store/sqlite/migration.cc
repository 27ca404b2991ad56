// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/migration.h"

#include <fmt/format.h>

#include "errors/store.h"

namespace caisson::store::sqlite {
namespace {

Result<std::int64_t> VersionOf(Database& database) {
  CAISSON_ASSIGN(auto statement, database.Prepare("PRAGMA user_version"));
  CAISSON_TRY(statement->Step());
  return statement->Integer(0);
}

Result<void> TakeMissing(Database& database, std::span<const char* const> steps) {
  CAISSON_ASSIGN(const std::int64_t version, VersionOf(database));
  const auto newest = static_cast<std::int64_t>(steps.size());
  if (version > newest) {
    return Fail(errors::kStoreVersion,
                fmt::format("the store has schema version {}, this program knows {}; run the "
                            "program that made it, or a newer one",
                            version, newest));
  }
  for (std::int64_t step = version; step < newest; ++step) {
    CAISSON_TRY(database.Execute(steps[static_cast<std::size_t>(step)]));
  }
  if (version == newest) return {};
  return database.Execute(fmt::format("PRAGMA user_version = {}", newest).c_str());
}

}  // namespace

Result<void> TakeSteps(Database& database, std::span<const char* const> steps) {
  CAISSON_TRY(database.Execute("BEGIN IMMEDIATE"));
  auto taken = TakeMissing(database, steps);
  CAISSON_TRY(database.Execute(taken ? "COMMIT" : "ROLLBACK"));
  return taken;
}

}  // namespace caisson::store::sqlite
