// SPDX-License-Identifier: Apache-2.0
// …/egress and …/bandwidth
#include "api/envelope.h"
#include "api/fields.h"
#include "api/routes.h"
#include "api/views.h"
#include "control/request_check.h"
#include "egress/policy.h"
#include "errors/api.h"

namespace caisson::api {
namespace {

// The rules as they were given, and what is enforced of them.
Result<json::Value> EgressOf(const store::Sandbox& sandbox) {
  CAISSON_ASSIGN(const auto policy, egress::Policy::Parse(sandbox.egress));
  json::Object view{{"id", sandbox.id}, {"egress", ToArray(sandbox.egress)}};
  json::Value effective =
      sandbox.is_capped ? egress::Policy::DenyAll().Effective() : policy.Effective();
  for (const auto& [key, value] : effective.as_object()) {
    if (!view.Contains(key)) view.Set(key, value);
  }
  if (sandbox.is_capped) view.Set("capped", true);
  return view;
}

Result<void> GetEgress(Call& call) {
  CAISSON_ASSIGN(const auto sandbox, call.context.sandboxes.Get(call.caller, call.id()));
  CAISSON_ASSIGN(json::Value view, EgressOf(sandbox));
  return Succeed(call.exchange, std::move(view));
}

Result<void> PutEgress(Call& call) {
  CAISSON_ASSIGN(const Fields fields, Fields::Read(call.exchange, call.context.options.body_bytes));
  CAISSON_ASSIGN(auto rules, fields.TextList("egress"));
  if (!rules && fields.bytes().find("\"egress\"") == std::string::npos) {
    return control::FailAt("egress", errors::kApiField,
                           "$.egress is required: a list of rules, or null for all that is public");
  }
  CAISSON_ASSIGN(const auto sandbox,
                 call.context.sandboxes.SetEgress(call.caller, call.id(),
                                                  rules.value_or(std::vector<std::string>{})));
  CAISSON_ASSIGN(json::Value view, EgressOf(sandbox));
  return Succeed(call.exchange, std::move(view));
}

Result<void> GetBandwidth(Call& call) {
  CAISSON_ASSIGN(const auto sandbox, call.context.sandboxes.ReadBandwidth(call.caller, call.id()));
  return Succeed(call.exchange, BandwidthOf(sandbox));
}

Result<void> Recharge(Call& call) {
  CAISSON_ASSIGN(const Fields fields, Fields::Read(call.exchange, call.context.options.body_bytes));
  CAISSON_ASSIGN(const auto bytes, fields.Integer("add_bytes"));
  if (!bytes) return control::FailAt("add_bytes", errors::kApiField, "$.add_bytes is required");
  CAISSON_ASSIGN(const auto sandbox,
                 call.context.sandboxes.Recharge(call.caller, call.id(), *bytes));
  return Succeed(call.exchange, BandwidthOf(sandbox));
}

}  // namespace

void AddNetwork(Routes& routes) {
  routes.Add("GET /v1/sandboxes/{id}/egress", Access::kSandbox, Pace::kBlocking, GetEgress);
  routes.Add("PUT /v1/sandboxes/{id}/egress", Access::kTenant, Pace::kBlocking, PutEgress);
  routes.Add("GET /v1/sandboxes/{id}/bandwidth", Access::kSandbox, Pace::kBlocking, GetBandwidth);
  routes.Add("POST /v1/sandboxes/{id}/bandwidth/recharge", Access::kTenant, Pace::kBlocking,
             Recharge);
}

}  // namespace caisson::api
