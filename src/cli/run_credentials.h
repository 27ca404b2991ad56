// SPDX-License-Identifier: Apache-2.0
// The credentials of a run: those that the command line names, then those of the vault.
#pragma once

#include <memory>
#include <optional>

#include "base/status.h"
#include "cli/runs_arguments.h"
#include "graph/credentials.h"
#include "store/workflows.h"
#include "vault/vault.h"

namespace caisson::cli {

class RunCredentials {
 public:
  // `store` may be null: the vault is then looked for only when its key is given. Fails with
  // cli.credential_unreadable, vault.key, vault.wrong_key.
  static Result<RunCredentials> Open(const ExecutionArguments& arguments,
                                     store::WorkflowStore* store);

  graph::CredentialResolver& resolver() { return *chain_; }

 private:
  std::unique_ptr<graph::StaticCredentials> given_;
  std::unique_ptr<store::WorkflowStore> store_;  // when nobody else has one open
  std::unique_ptr<graph::CredentialResolver> vault_;
  std::unique_ptr<graph::CredentialChain> chain_;
};

}  // namespace caisson::cli
