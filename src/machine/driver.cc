// SPDX-License-Identifier: Apache-2.0
#include "machine/driver.h"

#include "errors/machine.h"

namespace caisson::machine {

Result<void> Driver::SetSharedNetworks(const std::string&, const std::set<std::string>&) {
  return Fail(errors::kMachineUnsupported, "this driver's machines cannot share networks");
}

Result<egress::NetworkLog> Driver::ReadNetworkLog(const std::string&, std::uint64_t) {
  return Fail(errors::kMachineUnsupported, "this driver keeps no log of what it denies");
}

std::string_view NameOf(State state) {
  switch (state) {
    case State::kRunning:
      return "running";
    case State::kPausedInMemory:
      return "paused_in_memory";
    case State::kPausedOnDisk:
      return "paused_on_disk";
    case State::kStopped:
      return "stopped";
  }
  return "";
}

}  // namespace caisson::machine
