// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "api/text.h"
#include "base/foreign_text.h"
#include "cli/commands.h"
#include "cli/service.h"
#include "cli/service_store.h"
#include "control/names.h"
#include "errors/control.h"

namespace caisson::cli {
namespace {

constexpr std::size_t kMaxTenantLength = 63;

struct Limit {
  const char* name;
  std::int64_t store::Quota::* member;
};
constexpr Limit kLimits[] = {{"sandboxes", &store::Quota::sandboxes},
                             {"vcpus", &store::Quota::vcpus},
                             {"memory_mib", &store::Quota::memory_mib},
                             {"disk_mib", &store::Quota::disk_mib},
                             {"templates", &store::Quota::templates},
                             {"networks", &store::Quota::networks},
                             {"bandwidth_bytes", &store::Quota::bandwidth_bytes}};

json::Object ToJson(const store::Tenant& tenant) {
  json::Object quota;
  for (const Limit& limit : kLimits) quota.Set(limit.name, tenant.quota.*limit.member);
  return {{"id", tenant.id},
          {"created_at", api::Timestamp(tenant.created_at)},
          {"quota", std::move(quota)}};
}

std::string Shown(std::int64_t value) {
  return value == store::kUnlimited ? "unlimited" : std::to_string(value);
}

std::string ToTable(const std::vector<store::Tenant>& tenants) {
  std::string text = fmt::format("{:<16}", "TENANT");
  for (const Limit& limit : kLimits) text += fmt::format(" {:>15}", limit.name);
  text += '\n';
  for (const store::Tenant& tenant : tenants) {
    text += fmt::format("{:<16}", tenant.id);
    for (const Limit& limit : kLimits) {
      text += fmt::format(" {:>15}", Shown(tenant.quota.*limit.member));
    }
    text += '\n';
  }
  return text;
}

ExitCode List(store::Store& store, const TenantsArguments& arguments, Console& console) {
  auto tenants = store.Read([](store::Rows& rows) { return rows.Tenants(); });
  if (!tenants) return console.Complain(tenants.error());
  if (!arguments.json) return PrintText(ToTable(*tenants), console);
  json::Array list;
  for (const store::Tenant& tenant : *tenants) list.emplace_back(ToJson(tenant));
  return PrintJson(json::Object{{"tenants", std::move(list)}}, console);
}

ExitCode Set(store::Store& store, const TenantsArguments& arguments, Console& console) {
  if (!control::IsName(arguments.tenant, kMaxTenantLength)) {
    return console.Complain({.code = errors::kControlBadName,
                             .message = "the name of a tenant has 1 to 63 characters: a-z, 0-9 and "
                                        "'-', which may not come first or last"});
  }
  auto tenant = store.Write([&](store::Rows& rows) -> Result<store::Tenant> {
    CAISSON_ASSIGN(auto known, rows.FindTenant(arguments.tenant));
    store::Tenant row =
        known.value_or(store::Tenant{.id = arguments.tenant, .created_at = api::NowMilliseconds()});
    for (const Limit& limit : kLimits) {
      const auto set = arguments.quota.find(limit.name);
      if (set != arguments.quota.end()) row.quota.*limit.member = set->second;
    }
    CAISSON_TRY(rows.PutTenant(row));
    return row;
  });
  if (!tenant) return console.Complain(tenant.error());
  return PrintJson(ToJson(*tenant), console);
}

}  // namespace

ExitCode Tenants(const TenantsArguments& arguments, Console& console) {
  auto store = OpenServiceStore(StateDirectory(arguments.state) + "/service");
  if (!store) return console.Complain(store.error());
  return arguments.action == TenantsArguments::Action::kSet ? Set(**store, arguments, console)
                                                            : List(**store, arguments, console);
}

}  // namespace caisson::cli
