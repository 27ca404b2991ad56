// SPDX-License-Identifier: Apache-2.0
// …/egress, …/egress/log and …/bandwidth
#include "api/envelope.h"
#include "api/fields.h"
#include "api/requests.h"
#include "api/routes.h"
#include "api/text.h"
#include "api/views.h"
#include "control/request_check.h"
#include "egress/policy.h"
#include "errors/api.h"

namespace caisson::api {
namespace {

// The rules as they were given, and what is enforced of them.
Result<json::Value> EgressOf(const Context& context, const store::Sandbox& sandbox) {
  CAISSON_ASSIGN(const auto policy, context.sandboxes.PolicyOf(sandbox));
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
  CAISSON_ASSIGN(json::Value view, EgressOf(call.context, sandbox));
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
  CAISSON_ASSIGN(json::Value view, EgressOf(call.context, sandbox));
  return Succeed(call.exchange, std::move(view));
}

json::Object DenialOf(const egress::Denial& denial) {
  json::Object view{{"number", static_cast<std::int64_t>(denial.number)},
                    {"time", Timestamp(denial.time)},
                    {"kind", denial.kind}};
  const auto set = [&](const char* name, const std::string& text) {
    if (!text.empty()) view.Set(name, ValidUtf8(text));
  };
  set("protocol", denial.protocol);
  set("address", denial.address);
  if (denial.port != 0) view.Set("port", std::int64_t{denial.port});
  set("name", denial.name);
  set("rule", denial.rule);
  view.Set("reason", ValidUtf8(denial.why));
  view.Set("count", static_cast<std::int64_t>(denial.count));
  return view;
}

// What was denied since ?after=, oldest first, and what each rule by name has let through.
Result<void> GetLog(Call& call) {
  CAISSON_ASSIGN(const std::int64_t after,
                 ReadQueryNumber(call.request(), "after", 0, std::int64_t{1} << 53));
  CAISSON_ASSIGN(const auto sandbox, call.context.sandboxes.Get(call.caller, call.id()));
  CAISSON_ASSIGN(const egress::NetworkLog log,
                 call.context.sandboxes.ReadNetworkLog(sandbox, static_cast<std::uint64_t>(after)));
  json::Array denials;
  for (const egress::Denial& denial : log.denials) denials.emplace_back(DenialOf(denial));
  json::Array rules;
  for (const egress::RuleUse& use : log.rules) {
    rules.emplace_back(json::Object{{"rule", use.rule},
                                    {"answers", static_cast<std::int64_t>(use.answers)},
                                    {"connections", static_cast<std::int64_t>(use.connections)}});
  }
  return Succeed(call.exchange,
                 json::Object{{"id", sandbox.id},
                              {"denials", std::move(denials)},
                              {"last", static_cast<std::int64_t>(log.last)},
                              {"lost", static_cast<std::int64_t>(log.lost)},
                              {"refused_packets", static_cast<std::int64_t>(log.refused_packets)},
                              {"refused_by_name", static_cast<std::int64_t>(log.refused_by_gate)},
                              {"rules", std::move(rules)}});
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
  routes.Add("GET /v1/sandboxes/{id}/egress/log", Access::kSandbox, Pace::kBlocking, GetLog);
  routes.Add("GET /v1/sandboxes/{id}/bandwidth", Access::kSandbox, Pace::kBlocking, GetBandwidth);
  routes.Add("POST /v1/sandboxes/{id}/bandwidth/recharge", Access::kTenant, Pace::kBlocking,
             Recharge);
}

}  // namespace caisson::api
