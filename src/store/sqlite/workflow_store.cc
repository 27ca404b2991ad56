// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/workflow_store.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "errors/store.h"
#include "store/sqlite/database.h"
#include "store/sqlite/migration.h"
#include "store/sqlite/transactions.h"
#include "store/sqlite/workflow_rows.h"

namespace caisson::store::sqlite {
namespace {

// Only ever add to the end: files out there have had the first ones.
constexpr std::array<const char*, 3> kSteps{R"(
CREATE TABLE workflows (
  hash TEXT PRIMARY KEY, ir TEXT NOT NULL, name TEXT NOT NULL, created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE runs (
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
  workflow TEXT NOT NULL REFERENCES workflows, name TEXT NOT NULL, status TEXT NOT NULL,
  settings TEXT NOT NULL, owner TEXT NOT NULL, lease_until INTEGER NOT NULL,
  cancel INTEGER NOT NULL, parent TEXT NOT NULL, parent_step INTEGER NOT NULL,
  steps INTEGER NOT NULL, error TEXT NOT NULL, questions TEXT NOT NULL,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, ended_at INTEGER
) STRICT;
CREATE INDEX runs_by_status ON runs (status, number);
CREATE INDEX runs_by_workflow ON runs (workflow, number);
CREATE TABLE run_events (key INTEGER PRIMARY KEY, last INTEGER NOT NULL, lines TEXT NOT NULL) STRICT;
CREATE TABLE run_snapshots (key INTEGER PRIMARY KEY, progress TEXT NOT NULL) STRICT;
)",
                                            R"(
CREATE TABLE secrets (
  id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, sealed TEXT NOT NULL,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE vault_key (one INTEGER PRIMARY KEY CHECK (one = 1), sealed TEXT NOT NULL) STRICT;
)",
                                            R"(
CREATE TABLE items (
  space TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, updated_at INTEGER NOT NULL,
  PRIMARY KEY (space, key)
) STRICT;
CREATE TABLE files (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, mime_type TEXT NOT NULL, content TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
)"};

}  // namespace

Result<std::unique_ptr<WorkflowStore>> OpenWorkflows(const std::string& path,
                                                     Durability durability) {
  const auto sync =
      durability == Durability::kFull ? Database::Sync::kFull : Database::Sync::kNormal;
  CAISSON_ASSIGN(auto writer, Database::Open(path, sync));
  CAISSON_TRY(TakeSteps(*writer, kSteps));
  return std::make_unique<SqliteTransactions<WorkflowRows, SqliteWorkflowRows>>(path,
                                                                                std::move(writer));
}

Result<void> BackUp(const std::string& path, const std::string& copy) {
  if (access(path.c_str(), F_OK) != 0) {
    return Fail(errors::kStoreFailed, "there is no store " + path + ": " + std::strerror(errno));
  }
  CAISSON_ASSIGN(auto database, Database::Open(path));
  return database->CopyTo(copy);
}

}  // namespace caisson::store::sqlite
