// SPDX-License-Identifier: Apache-2.0
// /v1/pools: machines that are made before somebody asks for them
#include "control/pools.h"

#include "api/envelope.h"
#include "api/fields.h"
#include "api/requests.h"
#include "api/routes.h"
#include "api/text.h"
#include "api/views.h"
#include "control/request_check.h"
#include "errors/api.h"

namespace caisson::api {
namespace {

json::Array NamesOf(const std::map<std::string, std::string>& variables) {
  json::Array names;
  for (const auto& [name, value] : variables) names.emplace_back(name);
  return names;
}

// As it was asked for, but for the values of variables, which are never told.
json::Object ViewOf(const control::CreateRequest& request) {
  json::Object view{{"shape", request.shape}};
  if (!request.rootfs.empty()) view.Set("rootfs", request.rootfs);
  if (!request.driver.empty()) view.Set("driver", request.driver);
  if (request.disk_mib != 0) view.Set("disk_mib", request.disk_mib);
  view.Set("egress", ToArray(request.egress));
  view.Set("envs", NamesOf(request.envs));
  if (!request.networks.empty()) view.Set("networks", ToArray(request.networks));
  view.Set("labels", ToObject(request.labels));
  view.Set("ingress_enabled", request.ingress_enabled);
  if (request.ingress_token) view.Set("ingress_token", true);
  if (request.ingress_wakes) view.Set("ingress_wake", true);
  if (request.auto_pause_seconds) view.Set("auto_pause_after_seconds", *request.auto_pause_seconds);
  if (request.delete_after_seconds) {
    view.Set("delete_after_seconds", *request.delete_after_seconds);
  }
  return view;
}

json::Object ViewOf(const control::Warm& warm) {
  json::Object view{{"command", warm.command}, {"args", ToArray(warm.args)}};
  if (!warm.cwd.empty()) view.Set("cwd", warm.cwd);
  view.Set("env", NamesOf(warm.env));
  if (!warm.ready.empty()) view.Set("ready", warm.ready);
  view.Set("timeout_seconds", warm.timeout_seconds);
  return view;
}

json::Object ViewOf(const control::PoolView& pool) {
  json::Object view{{"name", pool.row.name},
                    {"sandbox", ViewOf(pool.definition.sandbox)},
                    {"size", pool.row.size},
                    {"idle_seconds", pool.row.idle_seconds},
                    {"ready", pool.ready},
                    {"making", pool.making},
                    {"handed_out", pool.row.handed_out},
                    {"missed", pool.row.missed},
                    {"created_at", Timestamp(pool.row.created_at)}};
  if (pool.definition.warm) view.Set("warm", ViewOf(*pool.definition.warm));
  if (!pool.error.empty()) view.Set("error", ValidUtf8(pool.error));
  return view;
}

Result<control::Warm> ReadWarm(const Fields& fields) {
  control::Warm warm;
  CAISSON_ASSIGN(warm.command, fields.RequiredText("command"));
  CAISSON_ASSIGN(auto args, fields.TextList("args"));
  CAISSON_ASSIGN(auto cwd, fields.Text("cwd"));
  CAISSON_ASSIGN(auto env, fields.TextMap("env"));
  CAISSON_ASSIGN(auto ready, fields.Text("ready"));
  CAISSON_ASSIGN(const auto seconds, fields.Integer("timeout_seconds"));
  warm.args = std::move(args).value_or(std::vector<std::string>{});
  warm.cwd = std::move(cwd).value_or("");
  warm.env = std::move(env).value_or(std::map<std::string, std::string>{});
  warm.ready = std::move(ready).value_or("");
  warm.timeout_seconds = seconds.value_or(warm.timeout_seconds);
  return warm;
}

Result<void> Put(Call& call) {
  CAISSON_ASSIGN(const Fields fields, Fields::Read(call.exchange, call.context.options.body_bytes));
  CAISSON_ASSIGN(const auto sandbox, fields.Object("sandbox"));
  if (!sandbox) return control::FailAt("sandbox", errors::kApiField, "$.sandbox is required");
  for (const char* name : {"name", "pool"}) {
    if (!sandbox->IsSet(name)) continue;
    return control::FailAt(std::string("sandbox.") + name, errors::kApiField,
                           "is given to each sandbox when it is taken; leave it out");
  }
  CAISSON_ASSIGN(const auto size, fields.Integer("size"));
  if (!size) return control::FailAt("size", errors::kApiField, "$.size is required");
  CAISSON_ASSIGN(const auto idle, fields.Integer("idle_seconds"));
  CAISSON_ASSIGN(const auto warm, fields.Object("warm"));
  control::PoolRequest request{.size = *size};
  request.idle_seconds = idle.value_or(request.idle_seconds);
  CAISSON_ASSIGN(request.definition.sandbox, ReadCreate(*sandbox));
  if (warm) {
    CAISSON_ASSIGN(request.definition.warm, ReadWarm(*warm));
  }
  CAISSON_ASSIGN(const control::Pools::Defined defined,
                 call.context.pools.Put(call.caller, call.Parameter("name"), request));
  json::Object view = ViewOf(defined.view);
  view.Set("created", defined.is_new);
  return Succeed(call.exchange, std::move(view));
}

Result<void> List(Call& call) {
  CAISSON_ASSIGN(const Page page, ReadPage(call.request()));
  CAISSON_ASSIGN(const auto all, call.context.pools.List(call.caller));
  json::Array views;
  for (const control::PoolView& pool : all) views.emplace_back(ViewOf(pool));
  return Succeed(call.exchange, CutPage(std::move(views), page));
}

Result<void> Get(Call& call) {
  CAISSON_ASSIGN(const auto pool, call.context.pools.Get(call.caller, call.Parameter("name")));
  return Succeed(call.exchange, ViewOf(pool));
}

Result<void> Delete(Call& call) {
  const std::string name = call.Parameter("name");
  CAISSON_TRY(call.context.pools.Delete(call.caller, name));
  return Succeed(call.exchange, json::Object{{"name", name}, {"deleted", true}});
}

}  // namespace

void AddPools(Routes& routes) {
  routes.Add("GET /v1/pools", Access::kTenant, Pace::kBlocking, List);
  routes.Add("PUT /v1/pools/{name}", Access::kTenant, Pace::kBlocking, Put);
  routes.Add("GET /v1/pools/{name}", Access::kTenant, Pace::kBlocking, Get);
  routes.Add("DELETE /v1/pools/{name}", Access::kTenant, Pace::kBlocking, Delete);
}

}  // namespace caisson::api
