// SPDX-License-Identifier: Apache-2.0
// One SQLite connection and its prepared statements, with errors as Status. Not thread-safe.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace caisson::store::sqlite {

// A statement in use; it is reset when this goes. Parameters and columns count from 0.
class Statement {
 public:
  Statement(sqlite3* database, sqlite3_stmt* statement)
      : database_(database), statement_(statement) {}
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }

  void Bind(int index, std::string_view text) {  // copied
    sqlite3_bind_text64(statement_, index + 1, text.data(), text.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
  }
  void Bind(int index, std::int64_t number) { sqlite3_bind_int64(statement_, index + 1, number); }
  void Bind(int index, double number) { sqlite3_bind_double(statement_, index + 1, number); }
  void BindNull(int index) { sqlite3_bind_null(statement_, index + 1); }

  // True when there is a row. A constraint that does not hold is store.conflict.
  Result<bool> Step();
  // Runs a statement that gives no rows.
  Result<void> Run();

  bool IsNull(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  std::int64_t Integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double Real(int column) const { return sqlite3_column_double(statement_, column); }
  std::string Text(int column) const;

 private:
  sqlite3* database_;
  sqlite3_stmt* statement_;
};

class Database {
 public:
  // Opens or makes the file, for its owner only, in WAL mode.
  static Result<std::unique_ptr<Database>> Open(const std::string& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Statements without parameters and rows, several of them perhaps.
  Result<void> Execute(const char* sql);
  // Prepared once. `sql` may not be in use already. Fails with store.failed.
  Result<std::unique_ptr<Statement>> Prepare(const std::string& sql);
  std::int64_t changes() const { return sqlite3_changes64(database_); }
  std::int64_t last_row() const { return sqlite3_last_insert_rowid(database_); }

 private:
  explicit Database(sqlite3* database) : database_(database) {}

  sqlite3* database_;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
};

}  // namespace caisson::store::sqlite
