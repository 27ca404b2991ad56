// SPDX-License-Identifier: Apache-2.0
#include "cli/run_credentials.h"

#include <cstdlib>
#include <utility>

#include "cli/files.h"
#include "cli/run_store.h"
#include "cli/vault_key.h"
#include "errors/cli.h"
#include "errors/graph.h"
#include "errors/vault.h"

namespace caisson::cli {
namespace {

Result<std::string> ReadSecret(const CredentialArgument& argument) {
  if (argument.from_environment) {
    const char* value = std::getenv(argument.place.c_str());
    if (value != nullptr) return value;
    return Fail(errors::kCliCredentialUnreadable, "credential '" + argument.name +
                                                      "': the environment variable " +
                                                      argument.place + " is not set");
  }
  auto text = ReadFile(argument.place, vault::kMaxSecretBytes);
  if (!text) {
    return Fail(errors::kCliCredentialUnreadable,
                "credential '" + argument.name + "': " + text.error().message);
  }
  if (text->ends_with('\n')) text->pop_back();  // the one that editors and echo add
  return text;
}

// A vault without its key: says of what is in it that it is there.
class LockedVault final : public graph::CredentialResolver {
 public:
  explicit LockedVault(store::WorkflowStore& store) : store_(store) {}
  Result<json::Value> Resolve(const graph::CredentialReference& reference) override {
    CAISSON_ASSIGN(const auto secret, store_.Read([&](store::WorkflowRows& rows) {
      return rows.FindSecret(reference.identifier);
    }));
    if (!secret) {
      return Fail(errors::kGraphCredentialNotFound, "Credential '" + reference.identifier +
                                                        "' was not found in the configured vault");
    }
    return Fail(Status{.code = errors::kVaultKey,
                       .message = "Credential '" + reference.identifier +
                                  "' is in the vault, whose key is not given",
                       .details = "name its place with --vault-key, or set "
                                  "CAISSON_VAULT_KEY_FILE"});
  }

 private:
  store::WorkflowStore& store_;
};

}  // namespace

Result<RunCredentials> RunCredentials::Open(const ExecutionArguments& arguments,
                                            store::WorkflowStore* store) {
  RunCredentials credentials;
  credentials.given_ = std::make_unique<graph::StaticCredentials>();
  for (const CredentialArgument& argument : arguments.credentials) {
    CAISSON_ASSIGN(std::string secret, ReadSecret(argument));
    credentials.given_->Add(argument.name, std::move(secret));
  }
  CAISSON_ASSIGN(auto key, FindVaultKey(arguments.vault));
  if (key) {
    if (store == nullptr) {
      CAISSON_ASSIGN(credentials.store_, OpenRunStore(arguments.record));
      store = credentials.store_.get();
    }
    CAISSON_ASSIGN(vault::Vault vault, vault::Vault::Open(*store, *std::move(key)));
    credentials.vault_ = std::make_unique<vault::Vault>(std::move(vault));
  } else if (store != nullptr) {
    credentials.vault_ = std::make_unique<LockedVault>(*store);
  }
  credentials.chain_ =
      std::make_unique<graph::CredentialChain>(credentials.given_.get(), credentials.vault_.get());
  return credentials;
}

}  // namespace caisson::cli
