// SPDX-License-Identifier: Apache-2.0
#include "graph/redaction.h"

#include <algorithm>

namespace caisson::graph {

Result<json::Value> SecretKeeper::Resolve(const CredentialReference& reference) {
  CAISSON_ASSIGN(json::Value secret, inner_->Resolve(reference));
  std::string placeholder = "[[" + reference.identifier;
  if (reference.path != std::vector<std::string>{"secret"}) {
    char separator = '#';
    for (const std::string& part : reference.path) {
      placeholder += separator + part;
      separator = '.';
    }
  }
  Remember(secret, placeholder + "]]");
  return secret;
}

void SecretKeeper::Remember(const json::Value& secret, const std::string& placeholder) {
  if (secret.is_string() && !secret.as_string().empty()) {
    const std::pair known(secret.as_string(), placeholder);
    if (std::ranges::find(secrets_, known) != secrets_.end()) return;
    redactor_.Add(known.first, placeholder);
    secrets_.push_back(known);
  } else if (secret.is_array()) {
    for (const json::Value& item : secret.as_array()) Remember(item, placeholder);
  } else if (secret.is_object()) {
    for (const auto& [key, member] : secret.as_object()) Remember(member, placeholder);
  }
}

json::Value SecretKeeper::Redact(json::Value value) const {
  if (secrets_.empty()) return value;
  if (value.is_string()) return Redact(value.as_string());
  if (value.is_array()) {
    json::Array items;
    items.reserve(value.as_array().size());
    for (const json::Value& item : value.as_array()) items.push_back(Redact(item));
    return items;
  }
  if (!value.is_object()) return value;
  json::Object members;
  members.Reserve(value.as_object().size());
  for (const auto& [key, member] : value.as_object()) members.Set(Redact(key), Redact(member));
  return members;
}

}  // namespace caisson::graph
