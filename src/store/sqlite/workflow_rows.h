// SPDX-License-Identifier: Apache-2.0
// Rows of workflow runs over one connection, inside a transaction that somebody else began.
#pragma once

#include "store/sqlite/database.h"
#include "store/workflows.h"

namespace caisson::store::sqlite {

class SqliteWorkflowRows final : public WorkflowRows {
 public:
  explicit SqliteWorkflowRows(Database& database) : database_(database) {}

  Result<void> PutWorkflow(const Workflow& workflow) override;
  Result<std::optional<Workflow>> FindWorkflow(const std::string& hash) override;
  Result<std::int64_t> InsertRun(const WorkflowRun& run) override;
  Result<std::optional<WorkflowRun>> FindRun(const std::string& id) override;
  Result<std::vector<WorkflowRun>> RunsLike(const std::string& prefix, std::int64_t limit) override;
  Result<std::vector<WorkflowRun>> Runs(const RunFilter& filter) override;
  Result<void> UpdateRun(const WorkflowRun& run) override;
  Result<void> DeleteRun(std::int64_t number) override;
  Result<std::optional<Claim>> FindClaim(std::int64_t number) override;
  Result<void> AppendEvents(std::int64_t number, const RunEvents& events) override;
  Result<std::vector<RunEvents>> EventsAfter(std::int64_t number, std::int64_t after,
                                             std::int64_t limit) override;
  Result<void> PutSnapshot(std::int64_t number, const RunSnapshot& snapshot) override;
  Result<std::optional<RunSnapshot>> SnapshotAt(std::int64_t number,
                                                std::int64_t sequence) override;
  Result<void> PutSecret(const Secret& secret) override;
  Result<std::optional<Secret>> FindSecret(const std::string& id_or_name) override;
  Result<std::vector<Secret>> Secrets() override;
  Result<bool> DeleteSecret(const std::string& id_or_name) override;
  Result<std::string> KeyCheck() override;
  Result<void> PutKeyCheck(const std::string& sealed) override;
  Result<std::optional<std::string>> FindItem(const std::string& space,
                                              const std::string& key) override;
  Result<void> PutItem(const std::string& space, const std::string& key, const std::string& value,
                       Milliseconds at) override;
  Result<void> InsertFile(const StoredFile& file) override;
  Result<std::optional<StoredFile>> FindFile(const std::string& id) override;
  Result<bool> DeleteFile(const std::string& id) override;

 private:
  Database& database_;
};

}  // namespace caisson::store::sqlite
