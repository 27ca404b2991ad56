// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/workflow_rows.h"

#include "errors/store.h"
#include "store/sqlite/query.h"
#include "store/sqlite/workflow_columns.h"

namespace caisson::store::sqlite {
namespace {

// Events and snapshots of a run lie side by side in their tables, by one integer: an append then
// writes the last page of a tree, and no index.
constexpr std::int64_t kPerRun = std::int64_t{1} << 32;
constexpr std::int64_t kMostRuns = std::int64_t{1} << 31;

std::int64_t KeyOf(std::int64_t number, std::int64_t sequence) {
  return number * kPerRun + sequence;
}

Result<void> CheckSequence(std::int64_t sequence) {
  if (sequence >= 0 && sequence < kPerRun) return {};
  return Fail(errors::kStoreFailed, "a run has more events than can be numbered");
}

}  // namespace

Result<void> SqliteWorkflowRows::PutWorkflow(const Workflow& workflow) {
  return InsertRow(database_, workflow, "INSERT OR IGNORE");
}
Result<std::optional<Workflow>> SqliteWorkflowRows::FindWorkflow(const std::string& hash) {
  return SelectOne<Workflow>(database_, "WHERE hash = ?", hash);
}

Result<std::int64_t> SqliteWorkflowRows::InsertRun(const WorkflowRun& run) {
  CAISSON_ASSIGN(auto statement,
                 database_.Prepare("SELECT seq FROM sqlite_sequence WHERE name = 'runs'"));
  CAISSON_ASSIGN(const bool some, statement->Step());
  WorkflowRun row = run;
  row.number = some ? statement->Integer(0) + 1 : 1;
  if (row.number >= kMostRuns) return Fail(errors::kStoreFailed, "the store has had too many runs");
  CAISSON_TRY(InsertRow(database_, row));
  return row.number;
}
Result<std::optional<WorkflowRun>> SqliteWorkflowRows::FindRun(const std::string& id) {
  return SelectOne<WorkflowRun>(database_, "WHERE id = ?", id);
}
Result<std::vector<WorkflowRun>> SqliteWorkflowRows::RunsLike(const std::string& prefix,
                                                              std::int64_t limit) {
  // Not LIKE, to which '%' would mean something.
  return Select<WorkflowRun>(database_, "WHERE substr(id, 1, length(?)) = ? ORDER BY id LIMIT ?",
                             prefix, prefix, limit);
}

Result<std::vector<WorkflowRun>> SqliteWorkflowRows::Runs(const RunFilter& filter) {
  return Select<WorkflowRun>(
      database_,
      "WHERE (? = '[]' OR status IN (SELECT value FROM json_each(?))) AND (? = '' OR workflow = ?) "
      "ORDER BY number DESC LIMIT ? OFFSET ?",
      filter.statuses, filter.statuses, filter.workflow, filter.workflow, filter.limit,
      filter.offset);
}

Result<void> SqliteWorkflowRows::UpdateRun(const WorkflowRun& run) {
  return UpdateRow(database_, run, "WHERE number = ?", run.number);
}

Result<void> SqliteWorkflowRows::DeleteRun(std::int64_t number) {
  for (const char* table : {"run_events", "run_snapshots"}) {
    CAISSON_TRY(Do(database_, std::string("DELETE FROM ") + table + " WHERE key >= ? AND key < ?",
                   KeyOf(number, 0), KeyOf(number + 1, 0)));
  }
  CAISSON_TRY(Do(database_, "DELETE FROM runs WHERE number = ?", number));
  return Do(database_, "DELETE FROM workflows WHERE hash NOT IN (SELECT workflow FROM runs)");
}

Result<std::optional<WorkflowRows::Claim>> SqliteWorkflowRows::FindClaim(std::int64_t number) {
  CAISSON_ASSIGN(auto statement,
                 Ask(database_, "SELECT owner, cancel FROM runs WHERE number = ?", number));
  CAISSON_ASSIGN(const bool found, statement->Step());
  if (!found) return std::nullopt;
  return Claim{statement->Text(0), statement->Integer(1) != 0};
}

Result<void> SqliteWorkflowRows::AppendEvents(std::int64_t number, const RunEvents& events) {
  CAISSON_TRY(CheckSequence(events.last));
  return Do(database_, "INSERT INTO run_events (key, last, lines) VALUES (?, ?, ?)",
            KeyOf(number, events.first), events.last, events.lines);
}

Result<std::vector<RunEvents>> SqliteWorkflowRows::EventsAfter(std::int64_t number,
                                                               std::int64_t after,
                                                               std::int64_t limit) {
  CAISSON_TRY(CheckSequence(after));
  CAISSON_ASSIGN(auto statement,
                 Ask(database_,
                     "SELECT key, last, lines FROM run_events WHERE key >= "
                     "coalesce((SELECT max(key) FROM run_events WHERE key > ? AND key <= ?), ?) "
                     "AND key < ? AND last > ? ORDER BY key LIMIT ?",
                     KeyOf(number, 0), KeyOf(number, after), KeyOf(number, 0), KeyOf(number + 1, 0),
                     after, limit));
  std::vector<RunEvents> batches;
  while (true) {
    CAISSON_ASSIGN(const bool more, statement->Step());
    if (!more) return batches;
    batches.push_back({statement->Integer(0) % kPerRun, statement->Integer(1), statement->Text(2)});
  }
}

Result<void> SqliteWorkflowRows::PutSnapshot(std::int64_t number, const RunSnapshot& snapshot) {
  CAISSON_TRY(CheckSequence(snapshot.sequence));
  return Do(database_, "INSERT OR REPLACE INTO run_snapshots (key, progress) VALUES (?, ?)",
            KeyOf(number, snapshot.sequence), snapshot.progress);
}

Result<std::optional<RunSnapshot>> SqliteWorkflowRows::SnapshotAt(std::int64_t number,
                                                                  std::int64_t sequence) {
  CAISSON_TRY(CheckSequence(sequence));
  CAISSON_ASSIGN(auto statement,
                 Ask(database_,
                     "SELECT key, progress FROM run_snapshots WHERE key >= ? AND key <= ? "
                     "ORDER BY key DESC LIMIT 1",
                     KeyOf(number, 0), KeyOf(number, sequence)));
  CAISSON_ASSIGN(const bool found, statement->Step());
  if (!found) return std::nullopt;
  return RunSnapshot{statement->Integer(0) % kPerRun, statement->Text(1)};
}

Result<void> SqliteWorkflowRows::PutSecret(const Secret& secret) {
  return InsertRow(database_, secret, "INSERT OR REPLACE");
}
Result<std::optional<Secret>> SqliteWorkflowRows::FindSecret(const std::string& id_or_name) {
  return SelectOne<Secret>(database_, "WHERE id = ? OR name = ? ORDER BY id <> ? LIMIT 1",
                           id_or_name, id_or_name, id_or_name);
}
Result<std::vector<Secret>> SqliteWorkflowRows::Secrets() {
  return Select<Secret>(database_, "ORDER BY name");
}
Result<bool> SqliteWorkflowRows::DeleteSecret(const std::string& id_or_name) {
  CAISSON_TRY(
      Do(database_, "DELETE FROM secrets WHERE id = ? OR name = ?", id_or_name, id_or_name));
  return database_.changes() > 0;
}

Result<std::string> SqliteWorkflowRows::KeyCheck() {
  CAISSON_ASSIGN(auto statement, database_.Prepare("SELECT sealed FROM vault_key"));
  CAISSON_ASSIGN(const bool found, statement->Step());
  return found ? statement->Text(0) : std::string();
}
Result<void> SqliteWorkflowRows::PutKeyCheck(const std::string& sealed) {
  return Do(database_, "INSERT OR REPLACE INTO vault_key (one, sealed) VALUES (1, ?)", sealed);
}

Result<std::optional<std::string>> SqliteWorkflowRows::FindItem(const std::string& space,
                                                                const std::string& key) {
  CAISSON_ASSIGN(auto statement,
                 Ask(database_, "SELECT value FROM items WHERE space = ? AND key = ?", space, key));
  CAISSON_ASSIGN(const bool found, statement->Step());
  if (!found) return std::nullopt;
  return statement->Text(0);
}
Result<void> SqliteWorkflowRows::PutItem(const std::string& space, const std::string& key,
                                         const std::string& value, Milliseconds at) {
  return Do(database_,
            "INSERT OR REPLACE INTO items (space, key, value, updated_at) VALUES (?, ?, ?, ?)",
            space, key, value, at);
}

Result<void> SqliteWorkflowRows::InsertFile(const StoredFile& file) {
  return InsertRow(database_, file);
}
Result<std::optional<StoredFile>> SqliteWorkflowRows::FindFile(const std::string& id) {
  return SelectOne<StoredFile>(database_, "WHERE id = ?", id);
}
Result<bool> SqliteWorkflowRows::DeleteFile(const std::string& id) {
  CAISSON_TRY(Do(database_, "DELETE FROM files WHERE id = ?", id));
  return database_.changes() > 0;
}

}  // namespace caisson::store::sqlite
