// SPDX-License-Identifier: Apache-2.0
// GET /v1/shapes, /v1/rootfs, /v1/hosts, /v1/capabilities
#include "api/envelope.h"
#include "api/routes.h"
#include "control/shapes.h"

namespace caisson::api {
namespace {

Result<void> ListShapes(Call& call) {
  CAISSON_ASSIGN(const Page page, ReadPage(call.request()));
  json::Array all;
  for (const control::Shape& shape : control::Shapes()) {
    all.emplace_back(json::Object{{"id", shape.id},
                                  {"vcpu", shape.vcpus},
                                  {"mem_mib", shape.memory_mib},
                                  {"default_disk_mib", shape.default_disk_mib}});
  }
  return Succeed(call.exchange, CutPage(std::move(all), page));
}

Result<void> ListRootfs(Call& call) {
  CAISSON_ASSIGN(const auto images, call.context.sandboxes.Catalogue());
  json::Array names;
  json::Array entries;
  for (const control::RootImage& image : images) {
    names.emplace_back(image.name);
    json::Object entry{{"name", image.name}};
    if (!image.description.empty()) entry.Set("description", image.description);
    entries.emplace_back(std::move(entry));
  }
  return Succeed(call.exchange,
                 json::Object{{"rootfs", std::move(names)},
                              {"default", call.context.sandboxes.options().default_rootfs},
                              {"entries", std::move(entries)}});
}

const char* NameOf(machine::Level level) {
  switch (level) {
    case machine::Level::kNone:
      return "none";
    case machine::Level::kMemory:
      return "memory";
    default:
      return "disk";
  }
}

const char* NameOf(machine::Extent extent) {
  switch (extent) {
    case machine::Extent::kNone:
      return "none";
    case machine::Extent::kFilesystem:
      return "fs";
    default:
      return "full";
  }
}

// What a client may rely on: what is false here is refused, not ignored.
json::Object CapabilitiesOf(const std::string& name, const machine::Capabilities& can) {
  return json::Object{{"driver", name},
                      {"isolation", can.isolation_class},
                      {"emulated", can.emulated},
                      {"description", can.isolation},
                      {"pause", NameOf(can.pause)},
                      {"disk_pause_keeps_processes", can.disk_pause_keeps_processes},
                      {"snapshot", NameOf(can.snapshot)},
                      {"fork", NameOf(can.fork)},
                      {"resize_disk", can.resize_disk},
                      {"networks", can.shared_networks},
                      {"egress", json::Object{{"deny_all", true},
                                              {"addresses", can.network},
                                              {"host_names", can.network && can.host_name_rules}}}};
}

Result<void> GetCapabilities(Call& call) {
  const control::Drivers& drivers = call.context.sandboxes.drivers();
  json::Array all;
  for (const std::string& name : drivers.names()) {
    all.emplace_back(CapabilitiesOf(name, drivers.Of(name).capabilities()));
  }
  return Succeed(call.exchange, json::Object{{"version", call.context.options.version},
                                             {"default", drivers.standard()},
                                             {"drivers", std::move(all)}});
}

Result<void> ListHosts(Call& call) {
  CAISSON_ASSIGN(const Page page, ReadPage(call.request()));
  const control::SandboxesOptions& options = call.context.sandboxes.options();
  CAISSON_ASSIGN(const auto images, call.context.sandboxes.Catalogue());
  CAISSON_ASSIGN(const auto usage, call.context.store.Read([&](store::Rows& rows) {
    return rows.UsageByTenant(options.host);
  }));
  std::int64_t machines = 0;
  for (const auto& [tenant, used] : usage) machines += used.sandboxes;
  json::Array names;
  for (const control::RootImage& image : images) names.emplace_back(image.name);
  const auto& drivers = call.context.sandboxes.drivers().names();
  json::Array hosts;
  hosts.emplace_back(
      json::Object{{"id", options.host},
                   {"status", call.context.sandboxes.draining() ? "draining" : "active"},
                   {"free_mib", options.host_now().free_memory_mib},
                   {"vm_count", machines},
                   {"drivers", json::Array(drivers.begin(), drivers.end())},
                   {"rootfses", std::move(names)}});
  return Succeed(call.exchange, CutPage(std::move(hosts), page));
}

}  // namespace

void AddCatalogue(Routes& routes) {
  routes.Add("GET /v1/shapes", Access::kOpen, Pace::kShort, ListShapes);
  routes.Add("GET /v1/rootfs", Access::kOpen, Pace::kBlocking, ListRootfs);
  routes.Add("GET /v1/capabilities", Access::kTenant, Pace::kShort, GetCapabilities);
  routes.Add("GET /v1/hosts", Access::kAdmin, Pace::kBlocking, ListHosts);
}

}  // namespace caisson::api
