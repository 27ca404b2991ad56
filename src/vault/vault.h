// SPDX-License-Identifier: Apache-2.0
// Secrets in the store, sealed under a key that is not there. A secret is a text, or the tokens of
// OAuth. Values come out only where a placeholder of a workflow asks for one. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "graph/credentials.h"
#include "json/value.h"
#include "store/workflows.h"
#include "vault/key.h"

namespace caisson::vault {

inline constexpr std::size_t kMaxSecretBytes = 1u << 20;

class Vault final : public graph::CredentialResolver {
 public:
  // The first opening makes that key the vault's. Fails with vault.wrong_key when another one is.
  static Result<Vault> Open(store::WorkflowStore& store, Key key);

  // Keeps a secret, in place of one of that name. `value` is a text, or for kind "oauth" an object
  // of access_token and, if it has them, refresh_token and expires_at. Fails with vault.value.
  Result<void> Put(const std::string& name, const std::string& kind, const json::Value& value);
  // Seals everything under `key`, which is the vault's from then on.
  Result<void> ChangeKey(Key key);

  // By id or by name. Fails with graph.credential_not_found, graph.credential_path, vault.sealed.
  Result<json::Value> Resolve(const graph::CredentialReference& reference) override;

 private:
  Vault(store::WorkflowStore& store, Key key) : store_(&store), key_(std::move(key)) {}

  store::WorkflowStore* store_;
  Key key_;
};

// What there is, without values; needs no key.
Result<std::vector<store::Secret>> List(store::WorkflowStore& store);
// Fails with graph.credential_not_found.
Result<void> Remove(store::WorkflowStore& store, const std::string& name);

}  // namespace caisson::vault
