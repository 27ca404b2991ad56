// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "errors/store.h"

namespace caisson::store::sqlite {
namespace {

// Longer than any transaction of ours takes; a program that is stopped in one holds the others up.
constexpr int kBusyMilliseconds = 15'000;

struct Kind {
  ErrorCode code;
  const char* advice;
};

Kind KindOf(int primary_code) {
  switch (primary_code) {
    case SQLITE_FULL:
      return {errors::kStoreFull, "make room on its disk, then try again"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {errors::kStoreLocked, "another process holds it; try again when that has ended"};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {errors::kStoreCorrupt,
              "the file is damaged or no store; put a backup in its place, or use another one"};
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return {errors::kStoreFailed, "see who owns it and its directory"};
    default:
      return {errors::kStoreFailed, ""};
  }
}

std::unexpected<Status> Failure(sqlite3* database, const std::string& what) {
  const Kind kind = KindOf(sqlite3_errcode(database) & 0xff);
  return Fail(Status{.code = kind.code,
                     .message = fmt::format("{}: {}", what, sqlite3_errmsg(database)),
                     .details = kind.advice});
}

}  // namespace

Result<bool> Statement::Step() {
  if (is_too_large_) {
    return Fail(errors::kStoreTooLarge, fmt::format("a text has more than the {} bytes that the "
                                                    "store can hold in one piece",
                                                    kMaxText));
  }
  const int outcome = sqlite3_step(statement_);
  if (outcome == SQLITE_ROW) return true;
  if (outcome == SQLITE_DONE) return false;
  if ((outcome & 0xff) == SQLITE_CONSTRAINT) {
    return Fail(errors::kStoreConflict, sqlite3_errmsg(database_));
  }
  return Failure(database_, "the store cannot be used");
}

Result<void> Statement::Run() {
  CAISSON_ASSIGN(const bool row, Step());
  (void)row;
  return {};
}

std::string Statement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

Result<std::unique_ptr<Database>> Database::Open(const std::string& path, Sync sync) {
  // Made here, since SQLite would make it readable for everybody; its other files take this mode. A
  // file that is there is left alone: to close any descriptor of it would drop all locks that other
  // connections of this process hold on it.
  const int made = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made < 0 && errno != EEXIST) {
    return Fail(errors::kStoreFailed,
                fmt::format("the store {} cannot be opened: {}", path, std::strerror(errno)));
  }
  if (made >= 0) close(made);
  sqlite3* handle = nullptr;
  const int opened =
      sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<Database> database(new Database(handle));
  if (opened != SQLITE_OK) return Failure(handle, "the store " + path + " cannot be opened");
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, kBusyMilliseconds);
  CAISSON_TRY(database->Execute(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;"
      "PRAGMA trusted_schema = OFF; PRAGMA cache_size = -1024;"));
  if (sync == Sync::kFull) CAISSON_TRY(database->Execute("PRAGMA synchronous = FULL"));
  return database;
}

Result<void> Database::CopyTo(const std::string& path) {
  const int made = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made < 0) {
    return Fail(errno == EEXIST ? errors::kStoreConflict : errors::kStoreFailed,
                fmt::format("the copy {} cannot be made: {}", path, std::strerror(errno)));
  }
  close(made);
  sqlite3* handle = nullptr;
  const int opened =
      sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  const Database copy(handle);
  if (opened != SQLITE_OK) return Failure(handle, "the copy " + path + " cannot be made");
  sqlite3_backup* backup = sqlite3_backup_init(handle, "main", database_, "main");
  if (backup == nullptr) return Failure(handle, "the copy " + path + " cannot be made");
  sqlite3_backup_step(backup, -1);  // all at once: a read transaction, which holds up no writer
  if (sqlite3_backup_finish(backup) != SQLITE_OK) {
    return Failure(handle, "the copy " + path + " cannot be made");
  }
  return {};
}

Database::~Database() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(database_);
}

Result<void> Database::Execute(const char* sql) {
  if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return Failure(database_, "the store cannot be used");
}

Result<std::unique_ptr<Statement>> Database::Prepare(const std::string& sql) {
  auto known = statements_.find(sql);
  if (known == statements_.end()) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v3(database_, sql.c_str(), static_cast<int>(sql.size()) + 1,
                           SQLITE_PREPARE_PERSISTENT, &statement, nullptr) != SQLITE_OK) {
      return Failure(database_, "the store cannot answer");
    }
    known = statements_.emplace(sql, statement).first;
  }
  return std::make_unique<Statement>(database_, known->second);
}

}  // namespace caisson::store::sqlite
