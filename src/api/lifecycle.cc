// SPDX-License-Identifier: Apache-2.0
// POST …/pause, …/resume, …/fork, …/resize
#include "api/envelope.h"
#include "api/fields.h"
#include "api/requests.h"
#include "api/routes.h"
#include "api/views.h"
#include "control/request_check.h"
#include "errors/api.h"

namespace caisson::api {
namespace {

Result<void> Pause(Call& call) {
  CAISSON_ASSIGN(const store::Sandbox row, call.context.sandboxes.Pause(call.caller, call.id()));
  return Succeed(call.exchange, ViewOf(call.context, row));
}

Result<void> Resume(Call& call) {
  CAISSON_ASSIGN(const store::Sandbox row, call.context.sandboxes.Resume(call.caller, call.id()));
  return Succeed(call.exchange, ViewOf(call.context, row));
}

Result<void> Fork(Call& call) {
  CAISSON_ASSIGN(const Fields fields, Fields::Read(call.exchange, call.context.options.body_bytes));
  control::ForkRequest request;
  CAISSON_ASSIGN(const auto start_paused, fields.Boolean("start_paused"));
  CAISSON_ASSIGN(const auto name, fields.Text("name"));
  CAISSON_ASSIGN(const auto driver, fields.Text("driver"));
  CAISSON_ASSIGN(const auto extent, fields.Text("extent"));
  if (extent && *extent != "full" && *extent != "filesystem") {
    return control::FailAt(
        "extent", errors::kApiField,
        "must be \"full\" (memory, processes and files, where the driver can) or "
        "\"filesystem\"");
  }
  CAISSON_ASSIGN(request.egress, fields.TextList("egress"));
  CAISSON_ASSIGN(request.envs, fields.TextMap("envs"));
  CAISSON_ASSIGN(request.labels, fields.TextMap("labels"));
  CAISSON_ASSIGN(request.ingress_enabled, fields.Boolean("ingress_enabled"));
  CAISSON_ASSIGN(request.bandwidth_quota, fields.Integer("bandwidth_quota_bytes"));
  CAISSON_TRY(fields.TextList("ssh_pubkeys"));
  if (fields.IsSet("ssh_pubkeys")) {
    return Fail(errors::kApiNotBuilt,
                "ssh_pubkeys: SSH keys do not exist on this server; leave the field out");
  }
  request.start_paused = start_paused.value_or(false);
  request.name = name.value_or("");
  request.driver = driver.value_or("");
  if (extent == "filesystem") request.most = machine::Extent::kFilesystem;
  CAISSON_ASSIGN(const control::Repeatable repeatable, RepeatableOf(call, fields.bytes()));
  CAISSON_ASSIGN(const control::Made made,
                 call.context.sandboxes.Fork(call.caller, call.id(), request, repeatable));
  return Succeed(call.exchange, ViewOf(call.context, made));
}

Result<void> Resize(Call& call) {
  CAISSON_ASSIGN(const Fields fields, Fields::Read(call.exchange, call.context.options.body_bytes));
  CAISSON_ASSIGN(const auto disk, fields.Integer("disk_mib"));
  if (!disk) return control::FailAt("disk_mib", errors::kApiField, "$.disk_mib is required");
  CAISSON_ASSIGN(const store::Sandbox row,
                 call.context.sandboxes.Resize(call.caller, call.id(), *disk));
  return Succeed(call.exchange, json::Object{{"id", row.id}, {"disk_mib", row.disk_mib}});
}

}  // namespace

void AddLifecycle(Routes& routes) {
  routes.Add("POST /v1/sandboxes/{id}/pause", Access::kSandbox, Pace::kBlocking, Pause);
  routes.Add("POST /v1/sandboxes/{id}/resume", Access::kSandbox, Pace::kBlocking, Resume);
  routes.Add("POST /v1/sandboxes/{id}/fork", Access::kTenant, Pace::kBlocking, Fork);
  routes.Add("POST /v1/sandboxes/{id}/resize", Access::kTenant, Pace::kBlocking, Resize);
}

}  // namespace caisson::api
