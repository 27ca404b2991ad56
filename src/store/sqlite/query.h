// SPDX-License-Identifier: Apache-2.0
// SQL made from the tables of columns.h.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "store/sqlite/columns.h"
#include "store/sqlite/database.h"
#include "store/sqlite/fields.h"

namespace caisson::store::sqlite {

template <typename Row>
std::vector<std::string> ColumnNames() {
  std::vector<std::string> names;
  Row row;
  Table<Row>::Columns(row, [&](const char* name, auto&) { names.emplace_back(name); });
  return names;
}

// "a, b, c" of `names`, each as `form` says with its name in place of {}.
std::string Joined(const std::vector<std::string>& names, std::string_view form);

template <typename... Values>
Result<std::unique_ptr<Statement>> Ask(Database& database, const std::string& sql,
                                       const Values&... values) {
  CAISSON_ASSIGN(auto statement, database.Prepare(sql));
  int index = 0;
  (Put(*statement, index++, values), ...);
  return statement;
}

template <typename... Values>
Result<void> Do(Database& database, const std::string& sql, const Values&... values) {
  CAISSON_ASSIGN(auto statement, Ask(database, sql, values...));
  return statement->Run();
}

template <typename Row>
Row TakeRow(const Statement& statement) {
  Row row;
  int column = 0;
  Table<Row>::Columns(row, [&](const char*, auto& member) { Take(statement, column++, member); });
  return row;
}

template <typename Row>
Result<std::vector<Row>> TakeAll(Statement& statement) {
  std::vector<Row> rows;
  while (true) {
    CAISSON_ASSIGN(const bool more, statement.Step());
    if (!more) return rows;
    rows.push_back(TakeRow<Row>(statement));
  }
}

template <typename Row>
const std::string& SelectFrom() {
  static const std::string sql =
      "SELECT " + Joined(ColumnNames<Row>(), "{}") + " FROM " + Table<Row>::kName + " ";
  return sql;
}

template <typename Row, typename... Values>
Result<std::vector<Row>> Select(Database& database, const std::string& rest,
                                const Values&... values) {
  CAISSON_ASSIGN(auto statement, Ask(database, SelectFrom<Row>() + rest, values...));
  return TakeAll<Row>(*statement);
}

template <typename Row, typename... Values>
Result<std::optional<Row>> SelectOne(Database& database, const std::string& rest,
                                     const Values&... values) {
  CAISSON_ASSIGN(auto statement, Ask(database, SelectFrom<Row>() + rest, values...));
  CAISSON_ASSIGN(const bool found, statement->Step());
  if (!found) return std::nullopt;
  return TakeRow<Row>(*statement);
}

// `verb` is INSERT or INSERT OR REPLACE. A column "seq" is left to the database.
template <typename Row>
Result<void> InsertRow(Database& database, const Row& row, std::string_view verb = "INSERT") {
  static const std::string rest = [] {
    std::vector<std::string> names = ColumnNames<Row>();
    std::erase(names, "seq");
    return std::string(" INTO ") + Table<Row>::kName + " (" + Joined(names, "{}") + ") VALUES (" +
           Joined(names, "?") + ")";
  }();
  CAISSON_ASSIGN(auto statement, database.Prepare(std::string(verb) + rest));
  int index = 0;
  Table<Row>::Columns(row, [&](const char* name, const auto& member) {
    if (std::string_view(name) != "seq") Put(*statement, index++, member);
  });
  return statement->Run();
}

// Whether a row has this for its life: it is not written again, nor are the indexes over it.
template <typename Row>
bool IsFixed(std::string_view column) {
  if constexpr (requires { Table<Row>::kFixed; }) {
    return std::ranges::find(Table<Row>::kFixed, column) != Table<Row>::kFixed.end();
  }
  return false;
}

// `rest` is the condition, with parameters that follow those of the columns.
template <typename Row, typename... Values>
Result<void> UpdateRow(Database& database, const Row& row, const std::string& rest,
                       const Values&... values) {
  static const std::string head = [] {
    std::vector<std::string> names = ColumnNames<Row>();
    std::erase_if(names, [](const std::string& name) { return IsFixed<Row>(name); });
    return std::string("UPDATE ") + Table<Row>::kName + " SET " + Joined(names, "{} = ?") + " ";
  }();
  CAISSON_ASSIGN(auto statement, database.Prepare(head + rest));
  int index = 0;
  Table<Row>::Columns(row, [&](const char* name, const auto& member) {
    if (!IsFixed<Row>(name)) Put(*statement, index++, member);
  });
  (Put(*statement, index++, values), ...);
  return statement->Run();
}

}  // namespace caisson::store::sqlite
