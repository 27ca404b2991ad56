// SPDX-License-Identifier: Apache-2.0
#include "cli/run_store.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "errors/store.h"
#include "store/sqlite/workflow_store.h"

namespace caisson::cli {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<std::string> DefaultPath() {
  std::string state = Variable("XDG_STATE_HOME");
  if (state.empty() && Variable("HOME").empty()) {
    return Fail(Status{.code = errors::kStoreFailed,
                       .message = "there is no place for the record of runs: neither HOME nor "
                                  "XDG_STATE_HOME is set",
                       .details = "name a file with --store, or run with --durability none"});
  }
  if (state.empty()) state = Variable("HOME") + "/.local/state";
  const std::string directory = state + "/caisson";
  std::error_code error;
  std::filesystem::create_directories(state, error);
  if (!error && mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    error.assign(errno, std::generic_category());
  }
  if (!error) return directory + "/runs.db";
  return Fail(Status{.code = errors::kStoreFailed,
                     .message = "the folder " + directory +
                                " for the record of runs cannot be made: " + error.message(),
                     .details = "name a file with --store, or run with --durability none"});
}

}  // namespace

Result<std::string> RunStorePath(const RecordArguments& arguments) {
  if (arguments.store) return *arguments.store;
  return DefaultPath();
}

Result<std::unique_ptr<store::WorkflowStore>> OpenRunStore(const RecordArguments& arguments) {
  CAISSON_ASSIGN(const std::string path, RunStorePath(arguments));
  return store::sqlite::OpenWorkflows(path,
                                      arguments.durability == RecordArguments::Durability::kFull
                                          ? store::sqlite::Durability::kFull
                                          : store::sqlite::Durability::kNormal);
}

}  // namespace caisson::cli
