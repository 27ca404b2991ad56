// SPDX-License-Identifier: Apache-2.0
// Credential placeholders: [[name]], [[name#secret]], [[uuid#oauth.access_token]]. Only those that
// stand in the IR's own text are references; what a template yields is data. A resolver gives the
// value; nothing here stores one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"

namespace caisson::graph {

struct CredentialReference {
  std::string identifier;         // a UUID, or a name
  std::vector<std::string> path;  // {"secret"} when the placeholder names none
  bool operator==(const CredentialReference&) const = default;
};

// From the text between the brackets; nullopt when it names nothing.
std::optional<CredentialReference> ParseCredentialBody(std::string_view body);

// The part that a placeholder's path names: of a plain secret, and of the tokens of OAuth, an
// object. Fail with graph.credential_path.
Result<json::Value> SecretPart(const json::Value& secret, const std::vector<std::string>& path);
Result<json::Value> OauthPart(json::Object tokens, const std::vector<std::string>& path);

class CredentialResolver {
 public:
  virtual ~CredentialResolver() = default;
  // Thread-safe. Fails with graph.credential_not_found or graph.credential_path. The message never
  // holds a secret.
  virtual Result<json::Value> Resolve(const CredentialReference& reference) = 0;
};

// A fixed set of plain secrets by name, as a command line gives them.
class StaticCredentials final : public CredentialResolver {
 public:
  void Add(std::string name, std::string secret) {
    secrets_.insert_or_assign(std::move(name), std::move(secret));
  }
  Result<json::Value> Resolve(const CredentialReference& reference) override;

 private:
  std::map<std::string, std::string, std::less<>> secrets_;
};

// Asks one resolver, and another one for what the first does not have. Either may be null.
class CredentialChain final : public CredentialResolver {
 public:
  CredentialChain(CredentialResolver* first, CredentialResolver* second)
      : first_(first), second_(second) {}
  Result<json::Value> Resolve(const CredentialReference& reference) override;

 private:
  CredentialResolver* first_;
  CredentialResolver* second_;
};

}  // namespace caisson::graph
