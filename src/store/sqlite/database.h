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
    is_too_large_ = is_too_large_ || text.size() > kMaxText;
    if (text.size() > kMaxText) return;
    sqlite3_bind_text64(statement_, index + 1, text.data(), text.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
  }
  void Bind(int index, std::int64_t number) { sqlite3_bind_int64(statement_, index + 1, number); }
  void Bind(int index, double number) { sqlite3_bind_double(statement_, index + 1, number); }
  void BindNull(int index) { sqlite3_bind_null(statement_, index + 1); }

  // True when there is a row. A constraint that does not hold is store.conflict, a text that no
  // row can hold store.too_large.
  Result<bool> Step();
  // Runs a statement that gives no rows.
  Result<void> Run();

  bool IsNull(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  std::int64_t Integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double Real(int column) const { return sqlite3_column_double(statement_, column); }
  std::string Text(int column) const;

 private:
  static constexpr std::size_t kMaxText = 900'000'000;  // SQLite takes a billion for a whole row

  sqlite3* database_;
  sqlite3_stmt* statement_;
  bool is_too_large_ = false;
};

class Database {
 public:
  // How much of what was committed a power cut may take: with kNormal the last moments, with kFull
  // nothing, at the price of an fsync with each commit. No end of the process takes any.
  enum class Sync : std::uint8_t { kNormal, kFull };

  // Opens or makes the file, for its owner only, in WAL mode.
  static Result<std::unique_ptr<Database>> Open(const std::string& path, Sync sync = Sync::kNormal);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Statements without parameters and rows, several of them perhaps.
  Result<void> Execute(const char* sql);
  // Prepared once. `sql` may not be in use already. Fails with store.failed.
  Result<std::unique_ptr<Statement>> Prepare(const std::string& sql);
  // Copies the whole database, as it is at one moment, into a new file that its owner alone may
  // read; others go on writing meanwhile. Fails with store.conflict when the file exists.
  Result<void> CopyTo(const std::string& path);
  std::int64_t changes() const { return sqlite3_changes64(database_); }
  std::int64_t last_row() const { return sqlite3_last_insert_rowid(database_); }

 private:
  explicit Database(sqlite3* database) : database_(database) {}

  sqlite3* database_;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
};

}  // namespace caisson::store::sqlite
