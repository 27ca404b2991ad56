// SPDX-License-Identifier: Apache-2.0
// GET /v1/shapes, /v1/rootfs, /v1/hosts
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
  json::Array hosts;
  hosts.emplace_back(
      json::Object{{"id", options.host},
                   {"status", call.context.sandboxes.draining() ? "draining" : "active"},
                   {"free_mib", options.host_now().free_memory_mib},
                   {"vm_count", machines},
                   {"rootfses", std::move(names)}});
  return Succeed(call.exchange, CutPage(std::move(hosts), page));
}

}  // namespace

void AddCatalogue(Routes& routes) {
  routes.Add("GET /v1/shapes", Access::kOpen, Pace::kShort, ListShapes);
  routes.Add("GET /v1/rootfs", Access::kOpen, Pace::kBlocking, ListRootfs);
  routes.Add("GET /v1/hosts", Access::kAdmin, Pace::kBlocking, ListHosts);
}

}  // namespace caisson::api
