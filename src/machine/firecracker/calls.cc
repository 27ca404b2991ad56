// SPDX-License-Identifier: Apache-2.0
#include "machine/firecracker/calls.h"

#include <fmt/format.h>

#include "egress/network.h"

namespace caisson::machine::firecracker {
namespace {

// Numbers and letters only, by its own rule.
constexpr const char* kDisk = "disk";
constexpr const char* kImage = "image";
constexpr const char* kNetwork = "eth0";
constexpr int kGuestCid = 3;  // the least there is; each machine has a host of its own

std::string Inside(const char* folder, const char* file) {
  return std::string(folder) + "/" + file;
}

std::string DiskFile() { return Inside(microvm::kInsideOwn, "disk.img"); }

Call Drive(const char* id, const std::string& file, bool read_only) {
  // With an initial file system no drive is the root; they are vda and vdb in this order.
  return {"PUT", std::string("/drives/") + id,
          json::Object{{"drive_id", id},
                       {"path_on_host", file},
                       {"is_root_device", false},
                       {"is_read_only", read_only},
                       // Else what the guest flushes is not: by default it is told a lie.
                       {"cache_type", "Writeback"}}};
}

Call State(const char* state) { return {"PATCH", "/vm", json::Object{{"state", state}}}; }

}  // namespace

std::string KernelCommand() {
  return fmt::format(
      "quiet loglevel=1 console=ttyS0 8250.nr_uarts=1 reboot=k panic=-1 pci=off i8042.noaux "
      "i8042.nomux i8042.dumbkbd random.trust_cpu=on ipv6.disable=1 cgroup_no_v1=all "
      "caisson.vsock={}",
      kAgentPort);
}

std::vector<Call> BootCalls(const microvm::Plan& plan) {
  std::vector<Call> calls = {
      {"PUT", "/machine-config",
       json::Object{{"vcpu_count", plan.processors}, {"mem_size_mib", plan.ram_bytes >> 20}}},
      {"PUT", "/boot-source",
       json::Object{{"kernel_image_path", Inside(microvm::kInsideBoot, "vmlinux")},
                    {"initrd_path", Inside(microvm::kInsideBoot, "initrd")},
                    {"boot_args", KernelCommand()}}},
      Drive(kImage, microvm::kInsideImage, true),
      Drive(kDisk, DiskFile(), false),
      {"PUT", "/vsock", json::Object{{"guest_cid", kGuestCid}, {"uds_path", kAgentSocket}}},
      {"PUT", "/entropy", json::Object{}}};
  if (plan.network) {
    calls.push_back({"PUT", std::string("/network-interfaces/") + kNetwork,
                     json::Object{{"iface_id", kNetwork}, {"host_dev_name", egress::kNamedTap}}});
  }
  calls.push_back({"PUT", "/actions", json::Object{{"action_type", "InstanceStart"}}});
  return calls;
}

std::vector<Call> LoadCalls(const microvm::Plan&) {
  return {{"PUT", "/snapshot/load",
           json::Object{{"snapshot_path", Inside(microvm::kInsideBase, "state")},
                        {"mem_backend",
                         json::Object{{"backend_type", "File"},
                                      {"backend_path", Inside(microvm::kInsideBase, "memory")}}},
                        {"resume_vm", true}}}};
}

Call PauseCall() { return State("Paused"); }
Call ResumeCall() { return State("Resumed"); }

Call SaveCall() {
  return {"PUT", "/snapshot/create",
          json::Object{{"snapshot_type", "Full"},
                       {"snapshot_path", Inside(microvm::kInsideOwn, "state")},
                       {"mem_file_path", Inside(microvm::kInsideOwn, "memory")}}};
}

Call GrownDiskCall() {
  return {"PATCH", std::string("/drives/") + kDisk,
          json::Object{{"drive_id", kDisk}, {"path_on_host", DiskFile()}}};
}

}  // namespace caisson::machine::firecracker
