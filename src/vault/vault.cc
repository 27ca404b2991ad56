// SPDX-License-Identifier: Apache-2.0
#include "vault/vault.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "errors/graph.h"
#include "errors/vault.h"
#include "graph/messages.h"
#include "json/reader.h"
#include "json/writer.h"
#include "vault/seal.h"

namespace caisson::vault {
namespace {

using store::Now;

constexpr std::string_view kCheck = "caisson vault";
constexpr std::string_view kCheckOf = "the vault's key";
constexpr std::string_view kOauth = "oauth";
constexpr std::array<std::string_view, 3> kTokens = {"access_token", "refresh_token", "expires_at"};

std::string BelongsTo(const store::Secret& secret) {
  return "caisson secret 1\n" + secret.id + "\n" + secret.kind;
}

std::unexpected<Status> NotFound(const std::string& name) {
  return Fail(errors::kGraphCredentialNotFound,
              "Credential '" + name + "' was not found in the configured vault");
}

std::unexpected<Status> WrongValue(std::string message) {
  return Fail(errors::kVaultValue, std::move(message));
}

Result<void> CheckName(const std::string& name) {
  if (name.empty() || name.size() > 200 || name.find_first_of("[]#\n\r\t") != std::string::npos ||
      name.front() == ' ' || name.back() == ' ') {
    return WrongValue(
        "the name of a secret has 1 to 200 bytes, no brackets, '#', tabs or line ends, and no "
        "space at its ends, or no [[placeholder]] could name it");
  }
  return {};
}

Result<void> CheckOauth(const json::Value& value) {
  const json::Value* access = value.Find("access_token");
  if (access == nullptr || !access->is_string() || access->as_string().empty()) {
    return WrongValue("an OAuth secret is a JSON object with a text 'access_token'");
  }
  for (const auto& [key, member] : value.as_object()) {
    const bool is_known = std::ranges::find(kTokens, key) != kTokens.end();
    if (!is_known || (!member.is_string() && !member.is_null())) {
      return WrongValue(
          "an OAuth secret has the texts access_token, refresh_token and expires_at, "
          "not '" +
          key + "' of another type or name");
    }
  }
  return {};
}

Result<void> CheckValue(const std::string& kind, const json::Value& value) {
  if (kind == kOauth) return CheckOauth(value);
  if (kind != "secret") return WrongValue("the kind of a secret is secret or oauth");
  if (!value.is_string() || value.as_string().empty()) {
    return WrongValue("a secret is a text that is not empty");
  }
  if (!json::Write(value)) {
    return WrongValue("a secret is text in UTF-8; give bytes of another kind as base64, say");
  }
  if (value.as_string().size() > kMaxSecretBytes) {
    return WrongValue("a secret has at most " + std::to_string(kMaxSecretBytes) + " bytes");
  }
  return {};
}

// The part of a secret that a placeholder asks for.
Result<json::Value> PartOf(const std::string& kind, const json::Value& value,
                           const std::vector<std::string>& path) {
  if (kind != kOauth) return graph::SecretPart(value, path);
  json::Object tokens;
  for (const std::string_view token : kTokens) {
    const json::Value* member = value.Find(token);
    tokens.Set(token, member != nullptr ? *member : json::Value());
  }
  return graph::OauthPart(std::move(tokens), path);
}

Result<void> Reseal(store::WorkflowRows& rows, const Key& before, const Key& after) {
  CAISSON_ASSIGN(auto secrets, rows.Secrets());
  for (store::Secret& secret : secrets) {
    CAISSON_ASSIGN(std::string text, Unseal(before, secret.sealed, BelongsTo(secret)));
    secret.sealed = Seal(after, text, BelongsTo(secret));
    sodium_memzero(text.data(), text.size());
    CAISSON_TRY(rows.PutSecret(secret));
  }
  return rows.PutKeyCheck(Seal(after, kCheck, kCheckOf));
}

Result<void> CheckKey(store::WorkflowRows& rows, const Key& key) {
  CAISSON_ASSIGN(const std::string check, rows.KeyCheck());
  if (check.empty()) return rows.PutKeyCheck(Seal(key, kCheck, kCheckOf));
  if (Unseal(key, check, kCheckOf)) return {};
  return Fail(Status{.code = errors::kVaultWrongKey,
                     .message = "the key is not that of the vault",
                     .details = "give the key that its secrets were set with; a vault whose key is "
                                "lost can only be emptied (caisson secrets rm)"});
}

}  // namespace

Result<Vault> Vault::Open(store::WorkflowStore& store, Key key) {
  CAISSON_TRY(store.Write([&](store::WorkflowRows& rows) { return CheckKey(rows, key); }));
  return Vault(store, std::move(key));
}

Result<void> Vault::Put(const std::string& name, const std::string& kind,
                        const json::Value& value) {
  CAISSON_TRY(CheckName(name));
  CAISSON_TRY(CheckValue(kind, value));
  CAISSON_ASSIGN(std::string text, json::Write(value));
  auto put = store_->Write([&](store::WorkflowRows& rows) -> Result<void> {
    // Another process may have changed the key since this was opened.
    CAISSON_TRY(CheckKey(rows, key_));
    CAISSON_ASSIGN(auto known, rows.FindSecret(name));
    store::Secret secret =
        known.value_or(store::Secret{.id = graph::RandomUuid(), .name = name, .created_at = Now()});
    secret.kind = kind;
    secret.updated_at = Now();
    secret.sealed = Seal(key_, text, BelongsTo(secret));
    return rows.PutSecret(secret);
  });
  sodium_memzero(text.data(), text.size());
  return put;
}

Result<void> Vault::ChangeKey(Key key) {
  CAISSON_TRY(store_->Write([&](store::WorkflowRows& rows) -> Result<void> {
    CAISSON_TRY(CheckKey(rows, key_));
    return Reseal(rows, key_, key);
  }));
  key_ = std::move(key);
  return {};
}

Result<json::Value> Vault::Resolve(const graph::CredentialReference& reference) {
  CAISSON_ASSIGN(const auto secret, store_->Read([&](store::WorkflowRows& rows) {
    return rows.FindSecret(reference.identifier);
  }));
  if (!secret) return NotFound(reference.identifier);
  CAISSON_ASSIGN(std::string text, Unseal(key_, secret->sealed, BelongsTo(*secret)));
  auto value = json::Read(text);
  sodium_memzero(text.data(), text.size());
  if (!value) return Fail(errors::kVaultSealed, "a secret of the vault is damaged");
  return PartOf(secret->kind, *value, reference.path);
}

Result<std::vector<store::Secret>> List(store::WorkflowStore& store) {
  return store.Read([](store::WorkflowRows& rows) { return rows.Secrets(); });
}

Result<void> Remove(store::WorkflowStore& store, const std::string& name) {
  return store.Write([&](store::WorkflowRows& rows) -> Result<void> {
    CAISSON_ASSIGN(const bool was_there, rows.DeleteSecret(name));
    if (!was_there) return NotFound(name);
    // The last one takes the key with it: an empty vault may have any.
    CAISSON_ASSIGN(const auto rest, rows.Secrets());
    return rest.empty() ? rows.PutKeyCheck("") : Result<void>();
  });
}

}  // namespace caisson::vault
