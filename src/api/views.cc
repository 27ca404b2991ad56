// SPDX-License-Identifier: Apache-2.0
#include "api/views.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/text.h"

namespace caisson::api {
namespace {

std::string IngressTemplate(const ApiOptions& options, const store::Sandbox& sandbox) {
  if (options.ingress_domain.empty()) {
    return fmt::format("{}/p/{}/<port>/", options.public_url, sandbox.id);
  }
  const std::size_t scheme = options.public_url.find("://");
  return fmt::format("{}://{}-<port>.{}", options.public_url.substr(0, scheme), sandbox.id,
                     options.ingress_domain);
}

void SetTime(json::Object& view, const char* name, std::optional<store::Milliseconds> time) {
  if (time) view.Set(name, Timestamp(*time));
}

}  // namespace

json::Array ToArray(const std::vector<std::string>& texts) { return {texts.begin(), texts.end()}; }

json::Object ToObject(const std::map<std::string, std::string>& texts) {
  json::Object out;
  for (const auto& [key, value] : texts) out.Set(key, value);
  return out;
}

json::Value ViewOf(const Context& context, const store::Sandbox& sandbox) {
  json::Object view{{"id", sandbox.id}, {"name", sandbox.name}, {"status", ToText(sandbox.state)}};
  if (!sandbox.ip.empty()) view.Set("ip", sandbox.ip);
  view.Set("vcpu", sandbox.vcpus);
  view.Set("mem_mib", sandbox.memory_mib);
  view.Set("disk_mib", sandbox.disk_mib);
  view.Set("created_at", Timestamp(sandbox.created_at));
  SetTime(view, "running_at", sandbox.running_at);
  SetTime(view, "destroyed_at", sandbox.destroyed_at);
  view.Set("ingress_enabled", sandbox.ingress_enabled);
  if (sandbox.ingress_enabled) {
    view.Set("ingress_url_template", IngressTemplate(context.options, sandbox));
    view.Set("ingress_wake", sandbox.ingress_wakes);
  }
  if (sandbox.spawn_ms) view.Set("spawn_ms", *sandbox.spawn_ms);
  view.Set("shape", sandbox.shape);
  view.Set("rootfs", sandbox.rootfs);
  view.Set("driver", sandbox.driver);
  if (context.sandboxes.drivers().Has(sandbox.driver)) {
    const machine::Capabilities can = context.sandboxes.DriverOf(sandbox).capabilities();
    view.Set("isolation", can.isolation_class);
    view.Set("emulated", can.emulated);
  }
  view.Set("region", context.sandboxes.options().region);
  view.Set("egress", ToArray(sandbox.egress));
  json::Array names;
  for (const auto& [name, value] : sandbox.envs) names.emplace_back(name);
  view.Set("envs", std::move(names));
  view.Set("ssh_pubkeys", ToArray(sandbox.ssh_pubkeys));
  view.Set("created_by", sandbox.created_by);
  view.Set("bandwidth_ingress_bytes", sandbox.bytes_in);
  SetTime(view, "paused_at", sandbox.paused_at);
  SetTime(view, "last_resumed_at", sandbox.last_resumed_at);
  if (sandbox.forked_from) view.Set("forked_from", *sandbox.forked_from);
  if (sandbox.auto_pause_seconds) view.Set("auto_pause_after_seconds", *sandbox.auto_pause_seconds);
  view.Set("labels", ToObject(sandbox.labels));
  SetTime(view, "delete_at", sandbox.delete_at);
  if (!sandbox.pool.empty()) view.Set("pool", json::Object{{"name", sandbox.pool}});
  if (!sandbox.warm_process.empty()) view.Set("warm_process", sandbox.warm_process);
  if (!sandbox.failure.empty()) view.Set("failure_reason", ValidUtf8(sandbox.failure));
  return view;
}

json::Value ViewOf(const Context& context, const control::Made& made) {
  json::Value view = ViewOf(context, made.sandbox);
  view.mutable_object().Set("bandwidth_quota_bytes", made.sandbox.bandwidth_quota);
  if (made.was_ready) {
    view.mutable_object().Set(
        "pool", json::Object{{"name", made.sandbox.pool}, {"ready", *made.was_ready}});
  }
  if (!made.ingress_token.empty()) view.mutable_object().Set("ingress_token", made.ingress_token);
  return view;
}

json::Value BandwidthOf(const store::Sandbox& sandbox) {
  const bool is_metered = sandbox.bandwidth_quota != store::kUnlimited;
  const std::int64_t remaining =
      is_metered ? std::max<std::int64_t>(0, sandbox.bandwidth_quota - sandbox.bytes_out)
                 : store::kUnlimited;
  return json::Object{{"id", sandbox.id},
                      {"quota_bytes", sandbox.bandwidth_quota},
                      {"used_bytes", sandbox.bytes_out},
                      {"ingress_bytes", sandbox.bytes_in},
                      {"remaining_bytes", remaining},
                      {"capped", sandbox.is_capped}};
}

}  // namespace caisson::api
