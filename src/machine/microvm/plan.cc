// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/plan.h"

#include <unistd.h>

#include <array>
#include <limits>
#include <string>

#include "errors/machine.h"
#include "json/reader.h"
#include "machine/fields.h"

namespace caisson::machine::microvm {

std::string_view NameOf(Accelerator accelerator) {
  return accelerator == Accelerator::kKvm ? "kvm" : "tcg";
}

json::Value ToJson(const Plan& plan) {
  return json::Object{{"uid", plan.uid},
                      {"tasks", plan.tasks},
                      {"scratch", plan.scratch},
                      {"qemu", plan.qemu},
                      {"preload", plan.preload},
                      {"boot", plan.boot},
                      {"image", plan.image},
                      {"own", plan.own},
                      {"base", plan.base},
                      {"accelerator", NameOf(plan.accelerator)},
                      {"ram_bytes", plan.ram_bytes},
                      {"processors", plan.processors},
                      {"tsc_khz", plan.tsc_khz},
                      {"shares_memory", plan.shares_memory},
                      {"mounts_disk", plan.mounts_disk},
                      {"waits", plan.waits},
                      {"trial", plan.trial},
                      {"network", plan.network},
                      {"boot_patience_ms", plan.boot_patience_ms},
                      {"host_name", plan.host_name},
                      {"machine_id", plan.machine_id},
                      {"hosts_file", plan.hosts_file},
                      {"resolv_file", plan.resolv_file},
                      {"address", plan.address},
                      {"mac", plan.mac},
                      {"gateway", plan.gateway},
                      {"gateway_mac", plan.gateway_mac},
                      {"memory_bytes", plan.memory_bytes},
                      {"pids", plan.pids},
                      {"disk_bytes", plan.disk_bytes},
                      {"max_file_bytes", plan.max_file_bytes},
                      {"firecracker", plan.firecracker},
                      {"jailer", plan.jailer},
                      {"jail_name", plan.jail_name},
                      {"network_namespace", plan.network_namespace}};
}

Result<Plan> PlanFromJson(const json::Value& value) {
  constexpr std::uint64_t kMost32 = std::numeric_limits<std::int32_t>::max();
  Fields fields(value);
  Plan plan;
  plan.uid = static_cast<std::uint32_t>(fields.Number("uid", kMost32));
  plan.tasks = static_cast<int>(fields.Number("tasks", 64));
  plan.scratch = fields.Text("scratch");
  plan.qemu = fields.Text("qemu");
  plan.preload = fields.Text("preload");
  plan.boot = fields.Text("boot");
  plan.image = fields.Text("image");
  plan.own = fields.Text("own");
  plan.base = fields.Text("base");
  plan.accelerator = fields.Text("accelerator") == "kvm" ? Accelerator::kKvm : Accelerator::kTcg;
  plan.ram_bytes = fields.Number("ram_bytes");
  plan.processors = static_cast<unsigned>(fields.Number("processors", 1024));
  plan.tsc_khz = fields.Number("tsc_khz");
  plan.shares_memory = fields.Bool("shares_memory");
  plan.mounts_disk = fields.Bool("mounts_disk");
  plan.waits = fields.Bool("waits");
  plan.trial = fields.Bool("trial");
  plan.network = fields.Bool("network");
  plan.boot_patience_ms = static_cast<std::uint32_t>(fields.Number("boot_patience_ms", kMost32));
  plan.host_name = fields.Text("host_name");
  plan.machine_id = fields.Text("machine_id");
  plan.hosts_file = fields.Text("hosts_file");
  plan.resolv_file = fields.Text("resolv_file");
  plan.address = fields.Text("address");
  plan.mac = fields.Text("mac");
  plan.gateway = fields.Text("gateway");
  plan.gateway_mac = fields.Text("gateway_mac");
  plan.memory_bytes = fields.Number("memory_bytes");
  plan.pids = fields.Number("pids");
  plan.disk_bytes = fields.Number("disk_bytes");
  plan.firecracker = fields.Text("firecracker");
  plan.jailer = fields.Text("jailer");
  plan.jail_name = fields.Text("jail_name");
  plan.network_namespace = fields.Text("network_namespace");
  plan.max_file_bytes = fields.Number("max_file_bytes");
  if (!fields.missed().empty()) {
    return Fail(errors::kMachineProtocol, "a plan has no valid " + fields.missed());
  }
  return plan;
}

Result<Plan> ReadPlan() {
  std::string text;
  std::array<char, 4096> piece{};
  for (ssize_t n = 0; (n = ::read(kPlanFd, piece.data(), piece.size())) > 0;) {
    text.append(piece.data(), static_cast<std::size_t>(n));
  }
  ::close(kPlanFd);
  CAISSON_ASSIGN(const json::Value value, json::Read(text));
  return PlanFromJson(value);
}

}  // namespace caisson::machine::microvm
