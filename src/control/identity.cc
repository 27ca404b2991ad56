// SPDX-License-Identifier: Apache-2.0
#include "control/identity.h"

#include "control/names.h"
#include "control/secret.h"
#include "errors/control.h"

namespace caisson::control {
namespace {

constexpr std::size_t kMaxTenantLength = 63;

std::unexpected<Status> Unauthenticated() {
  return Fail(errors::kControlUnauthenticated,
              "the API key is missing, wrong or revoked; send it in the header X-Api-Key");
}

Result<Caller> OfKey(store::Rows& rows, const std::string& hash) {
  CAISSON_ASSIGN(const auto key, rows.FindKeyByHash(hash));
  if (!key || key->revoked_at) return Unauthenticated();
  return Caller{.tenant = key->tenant, .actor = key->id, .is_admin = key->is_admin};
}

Result<Caller> OfToken(store::Rows& rows, const std::string& hash) {
  CAISSON_ASSIGN(const auto token, rows.FindTokenByHash(hash));
  if (!token) return Unauthenticated();
  CAISSON_ASSIGN(const auto sandbox, rows.FindSandbox(token->sandbox));
  if (!sandbox) return Unauthenticated();
  return Caller{
      .tenant = sandbox->tenant, .actor = "token of " + sandbox->id, .sandbox = sandbox->id};
}

NewToken MakeToken(const std::string& sandbox, store::Milliseconds now) {
  NewToken made{.secret = MakeSecret(kTokenPrefix)};
  made.token = {.sandbox = sandbox,
                .hash = HashOf(made.secret),
                .hint = made.secret.substr(0, kHintLength),
                .created_at = now};
  return made;
}

}  // namespace

Result<NewKey> CreateKey(store::Store& store, const std::string& tenant, const std::string& label,
                         bool is_admin, store::Milliseconds now) {
  if (!IsName(tenant, kMaxTenantLength)) {
    return Fail(errors::kControlBadName,
                "the name of a tenant has 1 to 63 characters: a-z, 0-9 and '-', which may not come "
                "first or last");
  }
  NewKey made{.secret = MakeSecret(kKeyPrefix)};
  made.key = {.id = "key-" + MakeUlid(now),
              .tenant = tenant,
              .label = label,
              .hash = HashOf(made.secret),
              .hint = made.secret.substr(0, kHintLength),
              .is_admin = is_admin,
              .created_at = now};
  CAISSON_TRY(store.Write([&](store::Rows& rows) -> Result<void> {
    CAISSON_ASSIGN(const auto known, rows.FindTenant(tenant));
    if (!known) CAISSON_TRY(rows.PutTenant({.id = tenant, .created_at = now}));
    return rows.InsertKey(made.key);
  }));
  return made;
}

Result<Caller> Authenticate(store::Store& store, std::string_view secret) {
  if (secret.empty()) return Unauthenticated();
  return store.Read(
      [hash = HashOf(secret), is_token = secret.starts_with(kTokenPrefix)](store::Rows& rows) {
        return is_token ? OfToken(rows, hash) : OfKey(rows, hash);
      });
}

Result<NewToken> CreateToken(store::Store& store, const std::string& sandbox,
                             store::Milliseconds now) {
  return store.Write([&](store::Rows& rows) -> Result<NewToken> {
    CAISSON_ASSIGN(const auto known, rows.FindToken(sandbox));
    if (known) {
      return Fail(errors::kControlTokenExists,
                  "the sandbox has an access token already; rotate or disable it");
    }
    NewToken made = MakeToken(sandbox, now);
    CAISSON_TRY(rows.PutToken(made.token));
    return made;
  });
}

Result<NewToken> RotateToken(store::Store& store, const std::string& sandbox,
                             store::Milliseconds now) {
  return store.Write([&](store::Rows& rows) -> Result<NewToken> {
    CAISSON_ASSIGN(const auto known, rows.FindToken(sandbox));
    if (!known) {
      return Fail(errors::kControlNoToken, "the sandbox has no access token to rotate; create one");
    }
    NewToken made = MakeToken(sandbox, now);
    made.token.created_at = known->created_at;
    made.token.rotated_at = now;
    CAISSON_TRY(rows.PutToken(made.token));
    return made;
  });
}

}  // namespace caisson::control
