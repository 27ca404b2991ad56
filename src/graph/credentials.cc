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

Result<json::Value> StaticCredentials::Resolve(const CredentialReference& reference) {
  const auto found = secrets_.find(reference.identifier);
  if (found == secrets_.end()) {
    return Fail(errors::kGraphCredentialNotFound,
                "Credential '" + reference.identifier + "' was not found in the configured vault");
  }
  const std::string head = nodes::Lower(reference.path[0]);
  if (head == "oauth") {
    return Fail(errors::kGraphCredentialPath,
                "OAuth payload requested for credential that is not of kind 'oauth'");
  }
  if (head != "secret") {
    return Fail(
        errors::kGraphCredentialPath,
        "Credential placeholder requested unsupported payload segment '" + reference.path[0] + "'");
  }
  if (reference.path.size() > 1) {
    return Fail(errors::kGraphCredentialPath, "Secret payload does not support nested attributes");
  }
  return json::Value(found->second);
}

}  // namespace caisson::graph
