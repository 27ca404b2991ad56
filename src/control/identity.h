// SPDX-License-Identifier: Apache-2.0
// Who is calling: API keys of tenants, and the delegated token that a sandbox may have. Secrets are
// shown once, by what makes them; the store has their hashes. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/store.h"

namespace caisson::control {

struct Caller {
  std::string tenant;
  std::string actor;  // for created_by and the audit log: id of the key, "token of <sandbox>"
  bool is_admin = false;
  std::optional<std::string> sandbox;  // a delegated token: the only sandbox that it is for
};

struct NewKey {
  store::Key key;
  std::string secret;
};

// Makes the tenant when there is none, with the default quota. Fails with control.bad_name.
Result<NewKey> CreateKey(store::Store& store, const std::string& tenant, const std::string& label,
                         bool is_admin, store::Milliseconds now);

// Fails with control.unauthenticated for what is empty, unknown or revoked.
Result<Caller> Authenticate(store::Store& store, std::string_view secret);

struct NewToken {
  store::AccessToken token;
  std::string secret;
};
// Fails with control.token_exists; the sandbox must exist.
Result<NewToken> CreateToken(store::Store& store, const std::string& sandbox,
                             store::Milliseconds now);
// The old one is dead at once. Fails with control.no_token.
Result<NewToken> RotateToken(store::Store& store, const std::string& sandbox,
                             store::Milliseconds now);

}  // namespace caisson::control
