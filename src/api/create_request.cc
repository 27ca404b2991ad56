// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "api/fields.h"
#include "api/requests.h"
#include "control/request_check.h"
#include "errors/api.h"

namespace caisson::api {
namespace {

// What the pool says, and a request that names a pool cannot.
constexpr const char* kOfPool[] = {"shape",         "rootfs",
                                   "driver",        "disk_mib",
                                   "egress",        "envs",
                                   "ssh_pubkeys",   "networks",
                                   "disks",         "ingress_enabled",
                                   "ingress_token", "ingress_wake",
                                   "region",        "bandwidth_quota_bytes",
                                   "host_id",       "node_selector"};

std::unexpected<Status> NotHere(const char* field, const char* what) {
  return Fail(errors::kApiNotBuilt,
              fmt::format("{}: {} do not exist on this server; leave the field out", field, what));
}

Result<control::CreateRequest> ReadTake(const Fields& fields, const std::string& pool) {
  for (const char* name : kOfPool) {
    if (!fields.IsSet(name)) continue;
    return control::FailAt(name, errors::kApiField,
                           "comes from the pool; leave it out, or define another pool");
  }
  control::CreateRequest request{.pool = pool};
  CAISSON_ASSIGN(auto name, fields.Text("name"));
  CAISSON_ASSIGN(auto labels, fields.TextMap("labels"));
  CAISSON_ASSIGN(request.auto_pause_seconds, fields.Integer("auto_pause_after_seconds"));
  CAISSON_ASSIGN(request.delete_after_seconds, fields.Integer("delete_after_seconds"));
  request.name = std::move(name).value_or("");
  request.labels = std::move(labels).value_or(std::map<std::string, std::string>{});
  return request;
}

}  // namespace

Result<control::CreateRequest> ReadCreate(const Fields& fields) {
  CAISSON_ASSIGN(const auto pool, fields.Text("pool"));
  if (pool && !pool->empty()) return ReadTake(fields, *pool);
  control::CreateRequest request;
  CAISSON_ASSIGN(request.shape, fields.RequiredText("shape"));
  CAISSON_ASSIGN(auto rootfs, fields.Text("rootfs"));
  CAISSON_ASSIGN(auto driver, fields.Text("driver"));
  CAISSON_ASSIGN(auto name, fields.Text("name"));
  CAISSON_ASSIGN(auto disk, fields.Integer("disk_mib"));
  CAISSON_ASSIGN(auto egress, fields.TextList("egress"));
  CAISSON_ASSIGN(auto envs, fields.TextMap("envs"));
  CAISSON_ASSIGN(auto labels, fields.TextMap("labels"));
  CAISSON_ASSIGN(auto ingress, fields.Boolean("ingress_enabled"));
  CAISSON_ASSIGN(auto ingress_token, fields.Boolean("ingress_token"));
  CAISSON_ASSIGN(auto ingress_wake, fields.Boolean("ingress_wake"));
  CAISSON_ASSIGN(request.auto_pause_seconds, fields.Integer("auto_pause_after_seconds"));
  CAISSON_ASSIGN(request.delete_after_seconds, fields.Integer("delete_after_seconds"));
  CAISSON_ASSIGN(auto quota, fields.Integer("bandwidth_quota_bytes"));
  CAISSON_ASSIGN(auto region, fields.Text("region"));
  CAISSON_ASSIGN(auto host, fields.Text("host_id"));
  CAISSON_ASSIGN(const auto networks, fields.ObjectList("networks"));
  CAISSON_TRY(fields.TextList("ssh_pubkeys"));
  CAISSON_TRY(fields.ObjectList("disks"));
  CAISSON_TRY(fields.TextMap("node_selector"));
  if (fields.IsSet("ssh_pubkeys")) return NotHere("ssh_pubkeys", "SSH keys");
  for (const Fields& network : networks) {
    CAISSON_ASSIGN(auto id, network.RequiredText("id"));
    request.networks.push_back(std::move(id));
  }
  if (fields.IsSet("disks")) return NotHere("disks", "attached disks");
  if (fields.IsSet("node_selector")) return NotHere("node_selector", "other hosts");
  request.rootfs = rootfs.value_or("");
  request.driver = driver.value_or("");
  request.name = name.value_or("");
  request.disk_mib = disk.value_or(0);
  request.egress = std::move(egress).value_or(std::vector<std::string>{});
  request.envs = std::move(envs).value_or(std::map<std::string, std::string>{});
  request.labels = std::move(labels).value_or(std::map<std::string, std::string>{});
  request.ingress_enabled = ingress.value_or(false);
  request.ingress_token = ingress_token.value_or(false);
  request.ingress_wakes = ingress_wake.value_or(false);
  request.bandwidth_quota = quota.value_or(0);
  request.region = region.value_or("");
  request.host = host.value_or("");
  return request;
}

}  // namespace caisson::api
