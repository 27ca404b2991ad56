// SPDX-License-Identifier: Apache-2.0
#include "cli/machine_drivers.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "machine/jail/driver.h"
#include "machine/oci/driver.h"

namespace caisson::cli {

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
                                               .agent = settings.agent},
                                  .runtime = std::move(runtime)},
                                 std::move(parts));
  };
  return {{"jail", jail}, {"oci", oci}};
}

std::string AgentBesideThisProgram() {
  std::array<char, 4096> path{};
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size());
  const std::string self(path.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  return self.substr(0, self.rfind('/') + 1) + "caisson-agent";
}

}  // namespace caisson::cli
