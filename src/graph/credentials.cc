// SPDX-License-Identifier: Apache-2.0
#include "graph/credentials.h"

#include "errors/graph.h"
#include "nodes/python_text.h"

namespace caisson::graph {

using nodes::Strip;

std::optional<CredentialReference> ParseCredentialBody(std::string_view body) {
  body = Strip(body);
  const std::size_t hash = std::min(body.find('#'), body.size());
  CredentialReference reference{std::string(Strip(body.substr(0, hash))), {}};
  if (reference.identifier.empty()) return std::nullopt;
  for (std::size_t begin = hash + 1; begin <= body.size();) {
    const std::size_t end = std::min(body.find('.', begin), body.size());
    const std::string_view part = Strip(body.substr(begin, end - begin));
    if (!part.empty()) reference.path.emplace_back(part);
    begin = end + 1;
  }
  if (reference.path.empty()) reference.path.emplace_back("secret");
  return reference;
}

namespace {

std::unexpected<Status> WrongPath(std::string message) {
  return Fail(errors::kGraphCredentialPath, std::move(message));
}

std::unexpected<Status> UnknownSegment(const std::string& segment) {
  return WrongPath("Credential placeholder requested unsupported payload segment '" + segment +
                   "'");
}

std::unexpected<Status> NotFound(const std::string& identifier) {
  return Fail(errors::kGraphCredentialNotFound,
              "Credential '" + identifier + "' was not found in the configured vault");
}

}  // namespace

Result<json::Value> SecretPart(const json::Value& secret, const std::vector<std::string>& path) {
  const std::string head = nodes::Lower(path[0]);
  if (head == "oauth") {
    return WrongPath("OAuth payload requested for credential that is not of kind 'oauth'");
  }
  if (head != "secret") return UnknownSegment(path[0]);
  if (path.size() > 1) return WrongPath("Secret payload does not support nested attributes");
  return secret;
}

Result<json::Value> OauthPart(json::Object tokens, const std::vector<std::string>& path) {
  const std::string head = nodes::Lower(path[0]);
  // The peer keeps a plain secret beside the tokens; here it is the access token.
  if (head == "secret" && path.size() == 1) return *tokens.Find("access_token");
  if (head == "secret") return WrongPath("Secret payload does not support nested attributes");
  if (head != "oauth") return UnknownSegment(path[0]);
  if (path.size() == 1) return json::Value(std::move(tokens));
  const json::Value* token = path.size() == 2 ? tokens.Find(path[1]) : nullptr;
  if (token != nullptr) return *token;
  return WrongPath("OAuth token payload does not expose attribute '" +
                   path[path.size() == 2 ? 1 : 2] +
                   "'. Available: access_token, refresh_token, expires_at");
}

Result<json::Value> StaticCredentials::Resolve(const CredentialReference& reference) {
  const auto found = secrets_.find(reference.identifier);
  if (found == secrets_.end()) return NotFound(reference.identifier);
  return SecretPart(json::Value(found->second), reference.path);
}

Result<json::Value> CredentialChain::Resolve(const CredentialReference& reference) {
  if (first_ != nullptr) {
    auto found = first_->Resolve(reference);
    if (found || second_ == nullptr || found.error().code != errors::kGraphCredentialNotFound) {
      return found;
    }
  }
  if (second_ == nullptr) return NotFound(reference.identifier);
  return second_->Resolve(reference);
}

}  // namespace caisson::graph
