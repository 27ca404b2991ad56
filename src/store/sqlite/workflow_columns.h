// SPDX-License-Identifier: Apache-2.0
// Which column holds which member, for the rows of workflow runs.
#pragma once

#include <array>
#include <string_view>

#include "store/sqlite/columns.h"
#include "store/workflows.h"

namespace caisson::store::sqlite {

template <>
struct Table<Workflow> {
  static constexpr const char* kName = "workflows";
  template <typename Row, typename Visit>
  static void Columns(Row& row, Visit visit) {
    visit("hash", row.hash);
    visit("ir", row.ir);
    visit("name", row.name);
    visit("created_at", row.created_at);
  }
};

template <>
struct Table<Secret> {
  static constexpr const char* kName = "secrets";
  template <typename Row, typename Visit>
  static void Columns(Row& row, Visit visit) {
    visit("id", row.id);
    visit("name", row.name);
    visit("kind", row.kind);
    visit("sealed", row.sealed);
    visit("created_at", row.created_at);
    visit("updated_at", row.updated_at);
  }
};

template <>
struct Table<StoredFile> {
  static constexpr const char* kName = "files";
  template <typename Row, typename Visit>
  static void Columns(Row& row, Visit visit) {
    visit("id", row.id);
    visit("name", row.name);
    visit("mime_type", row.mime_type);
    visit("content", row.content);
    visit("created_at", row.created_at);
  }
};

template <>
struct Table<WorkflowRun> {
  static constexpr const char* kName = "runs";
  static constexpr std::array<std::string_view, 6> kFixed{"number", "id",          "workflow",
                                                          "parent", "parent_step", "created_at"};
  template <typename Row, typename Visit>
  static void Columns(Row& row, Visit visit) {
    visit("number", row.number);
    visit("id", row.id);
    visit("workflow", row.workflow);
    visit("name", row.name);
    visit("status", row.status);
    visit("settings", row.settings);
    visit("owner", row.owner);
    visit("lease_until", row.lease_until);
    visit("cancel", row.cancel);
    visit("parent", row.parent);
    visit("parent_step", row.parent_step);
    visit("steps", row.steps);
    visit("error", row.error);
    visit("questions", row.questions);
    visit("created_at", row.created_at);
    visit("updated_at", row.updated_at);
    visit("ended_at", row.ended_at);
  }
};

}  // namespace caisson::store::sqlite
