// SPDX-License-Identifier: Apache-2.0
// …/access-token: the delegated token of one sandbox, for its owner's key only
#include "api/envelope.h"
#include "api/routes.h"
#include "api/text.h"
#include "control/identity.h"

namespace caisson::api {
namespace {

Result<void> ShowNew(Call& call, const control::NewToken& made) {
  json::Object view{
      {"token", made.secret}, {"enabled", true}, {"created_at", Timestamp(made.token.created_at)}};
  if (made.token.rotated_at) view.Set("rotated_at", Timestamp(*made.token.rotated_at));
  return Succeed(call.exchange, std::move(view));
}

Result<void> Create(Call& call) {
  CAISSON_ASSIGN(const auto sandbox, call.context.sandboxes.Get(call.caller, call.id()));
  CAISSON_ASSIGN(const auto made,
                 control::CreateToken(call.context.store, sandbox.id, NowMilliseconds()));
  return ShowNew(call, made);
}

Result<void> Rotate(Call& call) {
  CAISSON_ASSIGN(const auto sandbox, call.context.sandboxes.Get(call.caller, call.id()));
  CAISSON_ASSIGN(const auto made,
                 control::RotateToken(call.context.store, sandbox.id, NowMilliseconds()));
  return ShowNew(call, made);
}

Result<void> Get(Call& call) {
  CAISSON_ASSIGN(const auto sandbox, call.context.sandboxes.Get(call.caller, call.id()));
  CAISSON_ASSIGN(const auto token, call.context.store.Read([&](store::Rows& rows) {
    return rows.FindToken(sandbox.id);
  }));
  json::Object view{{"enabled", token.has_value()}};
  if (token) {
    view.Set("token_hint", token->hint);
    view.Set("created_at", Timestamp(token->created_at));
    if (token->rotated_at) view.Set("rotated_at", Timestamp(*token->rotated_at));
  }
  return Succeed(call.exchange, std::move(view));
}

Result<void> Disable(Call& call) {
  CAISSON_ASSIGN(const auto sandbox, call.context.sandboxes.Get(call.caller, call.id()));
  CAISSON_TRY(
      call.context.store.Write([&](store::Rows& rows) { return rows.DeleteToken(sandbox.id); }));
  return Succeed(call.exchange, json::Object{{"enabled", false}});
}

}  // namespace

void AddTokens(Routes& routes) {
  const std::string path = "/v1/sandboxes/{id}/access-token";
  routes.Add("POST " + path, Access::kTenant, Pace::kBlocking, Create);
  routes.Add("GET " + path, Access::kTenant, Pace::kBlocking, Get);
  routes.Add("DELETE " + path, Access::kTenant, Pace::kBlocking, Disable);
  routes.Add("POST " + path + "/rotate", Access::kTenant, Pace::kBlocking, Rotate);
}

}  // namespace caisson::api
