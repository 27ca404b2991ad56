// SPDX-License-Identifier: Apache-2.0
// The command lines of `caisson runs` and `caisson backup`, and what they have in common with
// `caisson run`, as plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "cli/node_host_arguments.h"
#include "graph/stream.h"
#include "http/outbound.h"

namespace CLI {
class App;
}

namespace caisson::cli {

// What is kept of a run, and where.
struct RecordArguments {
  enum class Durability { kNone, kNormal, kFull };
  Durability durability = Durability::kNormal;
  std::optional<std::string> store;  // the database file
};

// One --credential NAME=env:VAR or NAME=@file.
struct CredentialArgument {
  std::string name;
  bool from_environment = false;
  std::string place;  // the variable or the file
};

// Where the key of the vault is: "env:VARIABLE", "@FILE" or "cmd:COMMAND"; unset: where
// CAISSON_VAULT_KEY, CAISSON_VAULT_KEY_FILE or CAISSON_VAULT_KEY_COMMAND say.
struct VaultArguments {
  std::optional<std::string> key;
};

// How a run is carried out and shown, whether it begins or goes on.
struct ExecutionArguments {
  RecordArguments record;
  VaultArguments vault;
  std::vector<CredentialArgument> credentials;
  http::LoopbackGrant endpoints;  // of --allow-endpoint
  NodeHostArguments node_host;
  bool events = false;
  std::set<graph::StreamMode> streams;  // of --stream; they take the place of the events
  std::optional<std::string> events_file;
  bool report = false;
  bool quiet = false;
};
void AddExecution(CLI::App* command, ExecutionArguments& arguments);

struct RunsArguments {
  enum class Action { kList, kShow, kResume, kCancel, kFork, kEvents, kFile, kRemove };
  Action action = Action::kList;
  ExecutionArguments execution;
  std::string id;
  std::vector<std::string> statuses;  // list
  std::int64_t limit = 100;           // list
  bool json = false;                  // list, show
  std::optional<std::int64_t> step;   // show, fork
  std::int64_t after = 0;             // events
  bool follow = false;                // events
  std::optional<std::string> output;  // file
  std::optional<std::string> value;   // resume: JSON, @file or "-"
  std::vector<std::string> answers;   // resume: NODE=JSON
  std::optional<std::string> config;  // resume, fork: in place of the one before
  bool allow_unjailed = false;
  int workers = 0;
};

struct BackupArguments {
  RecordArguments record;
  std::string copy;
};

struct SecretsArguments {
  enum class Action { kSet, kList, kRemove, kRotateKey, kNewKey };
  Action action = Action::kList;
  RecordArguments record;
  VaultArguments vault;
  std::string name;        // of a secret; newkey: the file
  std::string from = "-";  // set: "-", "env:VARIABLE" or "@FILE"
  bool oauth = false;      // set
  bool json = false;       // list
  std::string new_key;     // rotate-key: a place
};

using RunsCommand = std::variant<RunsArguments, BackupArguments, SecretsArguments>;
void AddRunsCommands(CLI::App* app, const std::function<void(RunsCommand)>& take);

}  // namespace caisson::cli
