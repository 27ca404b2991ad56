// SPDX-License-Identifier: Apache-2.0
// /v1/sandboxes: create, list, get, change, delete
#include <fmt/format.h>

#include "api/envelope.h"
#include "api/fields.h"
#include "api/requests.h"
#include "api/routes.h"
#include "api/views.h"
#include "control/request_check.h"
#include "errors/api.h"

namespace caisson::api {
namespace {

constexpr std::size_t kMostKey = 255;

void CountMade(Call& call, const control::Made& made) {
  call.context.metrics.Observe("caisson_sandbox_spawn_seconds", "",
                               made.sandbox.spawn_ms.value_or(0) / 1000);
}

Result<void> Create(Call& call) {
  CAISSON_ASSIGN(const Fields fields, Fields::Read(call.exchange, call.context.options.body_bytes));
  CAISSON_ASSIGN(const control::CreateRequest request, ReadCreate(fields));
  CAISSON_ASSIGN(const control::Repeatable repeatable, RepeatableOf(call, fields.bytes()));
  CAISSON_ASSIGN(const control::Made made,
                 call.context.sandboxes.Create(call.caller, request, repeatable));
  CountMade(call, made);
  return Succeed(call.exchange, ViewOf(call.context, made));
}

Result<void> FindOrCreate(Call& call) {
  CAISSON_ASSIGN(const Fields fields, Fields::Read(call.exchange, call.context.options.body_bytes));
  CAISSON_ASSIGN(control::CreateRequest request, ReadCreate(fields));
  const std::string name = call.Parameter("name");
  if (!request.name.empty() && request.name != name) {
    return control::FailAt("name", errors::kApiField,
                           "is another one than in the path; leave it out of the body");
  }
  request.name = name;
  CAISSON_ASSIGN(const control::FoundOrMade found,
                 call.context.sandboxes.FindOrCreate(call.caller, request));
  if (found.is_new) CountMade(call, found.made);
  json::Value view = ViewOf(call.context, found.made);
  view.mutable_object().Set("created", found.is_new);
  return Succeed(call.exchange, std::move(view));
}

// ?status=running,paused and ?label=key=value, which may stand several times.
Result<store::SandboxFilter> ReadFilter(const http::Request& request) {
  store::SandboxFilter filter;
  for (const auto& [name, value] : request.query) {
    if (name == "status" && !value.empty()) {
      for (std::size_t start = 0; start <= value.size();) {
        const std::size_t end = std::min(value.find(',', start), value.size());
        const auto state = store::ParseSandboxState(value.substr(start, end - start));
        if (!state) {
          return control::FailAt(
              "status", errors::kApiField,
              "'" + value.substr(start, end - start).substr(0, 64) + "' is no status of a sandbox");
        }
        filter.states.push_back(*state);
        start = end + 1;
      }
    } else if (name == "label") {
      const std::size_t equals = value.find('=');
      if (equals == std::string::npos) {
        return control::FailAt("label", errors::kApiField, "must be key=value");
      }
      filter.labels[value.substr(0, equals)] = value.substr(equals + 1);
    }
  }
  return filter;
}

Result<void> List(Call& call) {
  CAISSON_ASSIGN(const Page page, ReadPage(call.request()));
  CAISSON_ASSIGN(store::SandboxFilter filter, ReadFilter(call.request()));
  filter.limit = page.limit;
  filter.offset = page.offset;
  std::int64_t total = 0;
  CAISSON_ASSIGN(const auto rows, call.context.sandboxes.List(call.caller, filter, total));
  json::Array views;
  for (const store::Sandbox& row : rows) views.push_back(ViewOf(call.context, row));
  return Succeed(call.exchange, PageOf(std::move(views), total, page));
}

Result<void> Get(Call& call) {
  CAISSON_ASSIGN(const store::Sandbox row, call.context.sandboxes.Get(call.caller, call.id()));
  return Succeed(call.exchange, ViewOf(call.context, row));
}

Result<void> GetByIp(Call& call) {
  CAISSON_ASSIGN(const store::Sandbox row,
                 call.context.sandboxes.GetByIp(call.caller, call.Parameter("ip")));
  return Succeed(call.exchange, ViewOf(call.context, row));
}

Result<void> Change(Call& call) {
  CAISSON_ASSIGN(const Fields fields, Fields::Read(call.exchange, call.context.options.body_bytes));
  control::PatchRequest request;
  CAISSON_ASSIGN(request.ingress_enabled, fields.Boolean("ingress_enabled"));
  CAISSON_ASSIGN(request.ingress_token, fields.Boolean("ingress_token"));
  CAISSON_ASSIGN(request.ingress_wakes, fields.Boolean("ingress_wake"));
  CAISSON_ASSIGN(request.auto_pause_seconds, fields.Integer("auto_pause_after_seconds"));
  CAISSON_ASSIGN(const auto disable, fields.Boolean("disable_auto_pause"));
  CAISSON_ASSIGN(request.labels, fields.TextMap("labels"));
  CAISSON_ASSIGN(request.delete_after_seconds, fields.Integer("delete_after_seconds"));
  request.disable_auto_pause = disable.value_or(false);
  if (request.disable_auto_pause && request.auto_pause_seconds) {
    return control::FailAt("disable_auto_pause", errors::kApiField,
                           "cannot be true beside auto_pause_after_seconds");
  }
  CAISSON_ASSIGN(const control::Made made,
                 call.context.sandboxes.Patch(call.caller, call.id(), request));
  json::Value view = ViewOf(call.context, made.sandbox);
  if (!made.ingress_token.empty()) view.mutable_object().Set("ingress_token", made.ingress_token);
  return Succeed(call.exchange, std::move(view));
}

Result<void> Delete(Call& call) {
  CAISSON_ASSIGN(const store::Sandbox row, call.context.sandboxes.Delete(call.caller, call.id()));
  return Succeed(call.exchange, json::Object{{"id", row.id}, {"status", ToText(row.state)}});
}

}  // namespace

Result<control::Repeatable> RepeatableOf(const Call& call, const std::string& body) {
  const std::string* key = call.request().headers.Find("Idempotency-Key");
  if (key == nullptr || key->empty()) return control::Repeatable{};
  if (key->size() > kMostKey) {
    return Fail(errors::kApiField,
                fmt::format("the header Idempotency-Key has at most {} characters", kMostKey));
  }
  return control::Repeatable{
      .key = *key,
      .fingerprint = call.request().method + " " + call.request().raw_path + "\n" + body};
}

void AddSandboxes(Routes& routes) {
  routes.Add("POST /v1/sandboxes", Access::kTenant, Pace::kBlocking, Create);
  routes.Add("GET /v1/sandboxes", Access::kTenant, Pace::kBlocking, List);
  routes.Add("GET /v1/sandboxes/{id}", Access::kSandbox, Pace::kShort, Get);
  routes.Add("GET /v1/sandboxes/by-ip/{ip}", Access::kTenant, Pace::kShort, GetByIp);
  routes.Add("PUT /v1/sandboxes/by-name/{name}", Access::kTenant, Pace::kBlocking, FindOrCreate);
  routes.Add("PATCH /v1/sandboxes/{id}", Access::kTenant, Pace::kBlocking, Change);
  routes.Add("DELETE /v1/sandboxes/{id}", Access::kSandbox, Pace::kBlocking, Delete);
}

}  // namespace caisson::api
