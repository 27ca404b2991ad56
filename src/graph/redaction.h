// SPDX-License-Identifier: Apache-2.0
// Keeps what a node resolved from leaving it: a resolver that remembers the secrets it gave out,
// and puts their placeholders back into whatever the node returns, says or fails with. It finds a
// secret as a part of any text or key, as base/redactor.h does. Used by one visit of one node, on
// its thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/redactor.h"
#include "base/status.h"
#include "graph/credentials.h"
#include "json/value.h"

namespace caisson::graph {

class SecretKeeper final : public CredentialResolver {
 public:
  // `inner` may be null: then resolver() is null too.
  explicit SecretKeeper(CredentialResolver* inner) : inner_(inner) {}

  // What to give to a Scope.
  CredentialResolver* resolver() { return inner_ == nullptr ? nullptr : this; }
  Result<json::Value> Resolve(const CredentialReference& reference) override;

  std::string Redact(std::string text) const { return redactor_.Redact(std::move(text)); }
  // Shares what holds no secret.
  json::Value Redact(json::Value value) const;
  // How much of a text that goes on can be judged already; see Redactor::Settled.
  std::size_t Settled(std::string_view text) const { return redactor_.Settled(text); }
  // Each secret that was given out, with its placeholder.
  const std::vector<std::pair<std::string, std::string>>& secrets() const { return secrets_; }

 private:
  void Remember(const json::Value& secret, const std::string& placeholder);

  CredentialResolver* inner_;
  std::vector<std::pair<std::string, std::string>> secrets_;  // secret, placeholder
  Redactor redactor_;
};

}  // namespace caisson::graph
