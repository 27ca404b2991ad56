// SPDX-License-Identifier: Apache-2.0
#include "cli/machine_drivers.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "machine/firecracker/driver.h"
#include "machine/jail/driver.h"
#include "machine/microvm/driver.h"
#include "machine/oci/driver.h"

namespace caisson::cli {
namespace {

machine::microvm::MicrovmOptions VirtualMachines(const DriverSettings& settings,
                                                 const std::string& folder,
                                                 const std::string& vmm) {
  return {.state = settings.state + folder,
          .cache = {},
          .images = settings.images,
          .kernel = settings.kernel,
          .agent = settings.agent,
          .init = InstalledFile("caisson-guest-init"),
          .vmm = InstalledFile(vmm),
          .preload = InstalledFile("caisson-private-memory.so"),
          .qemu = {},
          .allow_emulation = settings.allow_emulation,
          .max_templates = settings.max_vm_templates,
          .max_template_bytes = settings.max_vm_template_bytes,
          .template_patience = settings.vm_template_patience,
          .prepared = settings.prepared_vms,
          .waiting = settings.waiting_vms,
          .not_prepared = settings.not_prepared};
}

}  // namespace

std::map<std::string, OpenDriver> KnownDrivers(const DriverSettings& settings) {
  // The jail has the state directory itself, as it had before there were others.
  const auto jail = [settings](machine::SharedParts parts) {
    return machine::jail::OpenJail(
        {.workshop = {.state = settings.state, .images = settings.images, .agent = settings.agent},
         .prepared = settings.prepared,
         .threads = settings.builders,
         .not_prepared = settings.not_prepared},
        std::move(parts));
  };
  const auto oci =
      [settings](machine::SharedParts parts) -> Result<std::unique_ptr<machine::LocalDriver>> {
    CAISSON_ASSIGN(machine::oci::Runtime runtime,
                   machine::oci::ChooseRuntime(settings.oci_runtime));
    return machine::oci::OpenOci({.workshop = {.state = settings.state + "/oci",
                                               .images = settings.images,
                                               .agent = settings.agent,
                                               .init = InstalledFile("caisson-container-init")},
                                  .runtime = std::move(runtime),
                                  .prepared = settings.prepared,
                                  .threads = settings.builders,
                                  .not_prepared = settings.not_prepared},
                                 std::move(parts));
  };
  const auto microvm = [settings](machine::SharedParts parts) {
    return machine::microvm::OpenMicrovm(VirtualMachines(settings, "/microvm", "caisson-vmm"),
                                         std::move(parts));
  };
  // Both programs of Firecracker are found in PATH.
  const auto firecracker = [settings](machine::SharedParts parts) {
    machine::firecracker::FirecrackerOptions options;
    options.machines = VirtualMachines(settings, "/firecracker", "caisson-firecracker-vmm");
    return machine::firecracker::OpenFirecracker(options, std::move(parts));
  };
  return {{"firecracker", firecracker}, {"jail", jail}, {"microvm", microvm}, {"oci", oci}};
}

std::string BesideThisProgram(const std::string& name) {
  std::array<char, 4096> path{};
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size());
  const std::string self(path.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  return self.substr(0, self.rfind('/') + 1) + name;
}

std::string InstalledFile(const std::string& name) {
  const std::string beside = BesideThisProgram(name);
  if (::access(beside.c_str(), F_OK) == 0) return beside;
  return BesideThisProgram("../lib/caisson/" + name);
}

}  // namespace caisson::cli
