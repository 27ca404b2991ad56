// SPDX-License-Identifier: Apache-2.0
// /v1/networks and /v1/sandboxes/{id}/networks
#include "control/networks.h"
#include "api/envelope.h"
#include "api/fields.h"
#include "api/routes.h"
#include "api/text.h"
#include "errors/api.h"

namespace caisson::api {
namespace {

// 501 where no driver of this server can join machines.
Result<control::Networks> NetworksOf(const Call& call) {
  control::Networks networks(call.context.sandboxes);
  if (networks.AreThere()) return networks;
  return Fail(errors::kApiNotBuilt,
              "networks between sandboxes do not exist with the drivers of this server");
}

json::Object ViewOf(const control::NetworkView& view) {
  return json::Object{{"id", view.network.id},
                      {"name", view.network.name},
                      {"created_at", Timestamp(view.network.created_at)},
                      {"member_count", static_cast<std::int64_t>(view.members.size())}};
}

json::Array MembersOf(const control::NetworkView& view) {
  json::Array members;
  for (const store::Sandbox& sandbox : view.members) {
    json::Object member{
        {"sandbox_id", sandbox.id}, {"name", sandbox.name}, {"status", ToText(sandbox.state)}};
    if (!sandbox.ip.empty()) member.Set("ip", sandbox.ip);
    members.emplace_back(std::move(member));
  }
  return members;
}

Result<void> Create(Call& call) {
  CAISSON_ASSIGN(auto networks, NetworksOf(call));
  CAISSON_ASSIGN(const Fields fields, Fields::Read(call.exchange, call.context.options.body_bytes));
  CAISSON_ASSIGN(const std::string name, fields.RequiredText("name"));
  CAISSON_ASSIGN(const auto view, networks.Create(call.caller, name));
  return Succeed(call.exchange, ViewOf(view));
}

Result<void> List(Call& call) {
  CAISSON_ASSIGN(auto networks, NetworksOf(call));
  CAISSON_ASSIGN(const Page page, ReadPage(call.request()));
  CAISSON_ASSIGN(const auto all, networks.List(call.caller));
  json::Array views;
  for (const control::NetworkView& view : all) views.emplace_back(ViewOf(view));
  return Succeed(call.exchange, CutPage(std::move(views), page));
}

Result<void> Get(Call& call) {
  CAISSON_ASSIGN(auto networks, NetworksOf(call));
  CAISSON_ASSIGN(const auto view, networks.Get(call.caller, call.Parameter("network")));
  json::Object out = ViewOf(view);
  out.Set("members", MembersOf(view));
  return Succeed(call.exchange, std::move(out));
}

Result<void> Delete(Call& call) {
  CAISSON_ASSIGN(auto networks, NetworksOf(call));
  CAISSON_TRY(networks.Delete(call.caller, call.Parameter("network")));
  return Succeed(call.exchange, json::Object{{"ok", true}});
}

Result<void> Join(Call& call) {
  CAISSON_TRY(NetworksOf(call));
  CAISSON_ASSIGN(const Fields fields, Fields::Read(call.exchange, call.context.options.body_bytes));
  CAISSON_ASSIGN(const std::string network, fields.RequiredText("id"));
  CAISSON_TRY(call.context.sandboxes.Join(call.caller, call.id(), network));
  return Succeed(call.exchange, json::Object{{"ok", true}});
}

Result<void> Leave(Call& call) {
  CAISSON_TRY(NetworksOf(call));
  CAISSON_TRY(call.context.sandboxes.Leave(call.caller, call.id(), call.Parameter("network")));
  return Succeed(call.exchange, json::Object{{"ok", true}});
}

}  // namespace

void AddNetworks(Routes& routes) {
  routes.Add("POST /v1/networks", Access::kTenant, Pace::kBlocking, Create);
  routes.Add("GET /v1/networks", Access::kTenant, Pace::kBlocking, List);
  routes.Add("GET /v1/networks/{network}", Access::kTenant, Pace::kBlocking, Get);
  routes.Add("DELETE /v1/networks/{network}", Access::kTenant, Pace::kBlocking, Delete);
  routes.Add("POST /v1/sandboxes/{id}/networks", Access::kTenant, Pace::kBlocking, Join);
  routes.Add("DELETE /v1/sandboxes/{id}/networks/{network}", Access::kTenant, Pace::kBlocking,
             Leave);
}

}  // namespace caisson::api
