// SPDX-License-Identifier: Apache-2.0
// Transactions over SQLite: one connection that writes, and as many readers as are at it at once.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "store/sqlite/database.h"
#include "store/transactions.h"

namespace caisson::store::sqlite {

// `RowsOver` is a Rows over a Database.
template <typename Rows, typename RowsOver>
class SqliteTransactions final : public Transactions<Rows> {
 public:
  SqliteTransactions(std::string path, std::unique_ptr<Database> writer)
      : path_(std::move(path)), writer_(std::move(writer)) {}

 protected:
  Result<void> Transact(bool writes, const std::function<Result<void>(Rows&)>& work) override {
    if (writes) {
      const std::lock_guard lock(write_mutex_);
      return Within(*writer_, "BEGIN IMMEDIATE", work);
    }
    CAISSON_ASSIGN(auto reader, TakeReader());
    auto outcome = Within(*reader, "BEGIN", work);
    const std::lock_guard lock(read_mutex_);
    readers_.push_back(std::move(reader));
    return outcome;
  }

 private:
  static Result<void> Within(Database& database, const char* begin,
                             const std::function<Result<void>(Rows&)>& work) {
    CAISSON_TRY(Finish(database, begin));
    RowsOver rows(database);
    auto outcome = work(rows);
    if (outcome) outcome = Finish(database, "COMMIT");
    // Also after a COMMIT that failed. Nothing can be done when this fails: the database has ended
    // the transaction by itself.
    if (!outcome) static_cast<void>(Finish(database, "ROLLBACK"));
    return outcome;
  }
  // Prepared once, since these run with every request.
  static Result<void> Finish(Database& database, const char* sql) {
    CAISSON_ASSIGN(auto statement, database.Prepare(sql));
    return statement->Run();
  }

  Result<std::unique_ptr<Database>> TakeReader() {
    {
      const std::lock_guard lock(read_mutex_);
      if (!readers_.empty()) {
        auto reader = std::move(readers_.back());
        readers_.pop_back();
        return reader;
      }
    }
    return Database::Open(path_);
  }

  std::string path_;
  std::mutex write_mutex_;
  std::unique_ptr<Database> writer_;
  std::mutex read_mutex_;
  std::vector<std::unique_ptr<Database>> readers_;
};

}  // namespace caisson::store::sqlite
