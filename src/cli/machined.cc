// SPDX-License-Identifier: Apache-2.0
// caisson machined: the helper that makes machines, as root, for a service that is not.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "errors/machine.h"
#include "images/store.h"
#include "machine/helper/server.h"
#include "machine/jail/driver.h"
#include "machine/machines.h"
#include "machine/networks.h"

namespace caisson::cli {
namespace {

std::string BesideThisProgram(const char* name) {
  std::array<char, 4096> path{};
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size());
  std::string self(path.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  return self.substr(0, self.rfind('/') + 1) + name;
}

using OpenDriver =
    std::function<Result<std::unique_ptr<machine::LocalDriver>>(machine::SharedParts)>;

// What each name of --driver stands for. The jail has the state directory itself, as it had before
// there were others.
std::map<std::string, OpenDriver> Known(const MachinedArguments& arguments) {
  const std::string images = arguments.images.value_or(images::Store::DefaultDirectory());
  const std::string agent = arguments.agent.value_or(BesideThisProgram("caisson-agent"));
  return {{"jail", [=](machine::SharedParts parts) {
             return machine::jail::OpenJail(
                 {.workshop = {.state = arguments.state, .images = images, .agent = agent},
                  .prepared = arguments.prepared,
                  .threads = arguments.builders},
                 std::move(parts));
           }}};
}

Result<std::unique_ptr<machine::helper::Server>> Open(const MachinedArguments& arguments) {
  if (::geteuid() != 0) {
    return Fail(errors::kMachineUnavailable, "machines are made by root; run this with sudo");
  }
  std::shared_ptr<machine::Networks> networks = machine::NoNetworks();
  if (!arguments.without_network) {
    CAISSON_ASSIGN(networks, machine::GatewayNetworks({.directory = arguments.network}));
  }
  const machine::SharedParts parts{.networks = networks,
                                   .ids = std::make_shared<machine::IdRanges>()};
  const auto known = Known(arguments);
  machine::MachinesByDriver drivers;
  std::vector<std::string> names = arguments.drivers;
  if (names.empty()) names.emplace_back("jail");
  for (const std::string& name : names) {
    if (drivers.contains(name)) continue;
    CAISSON_ASSIGN(auto driver, known.at(name)(parts));
    CAISSON_ASSIGN(drivers[name], machine::Machines::Open(std::move(driver), networks));
  }
  CAISSON_TRY(machine::RemoveStrays(*networks, drivers));
  return machine::helper::Server::Listen(std::move(drivers), arguments.socket, arguments.user);
}

}  // namespace

ExitCode Machined(const MachinedArguments& arguments, Console& console) {
  const Interrupt interrupt(console);
  auto helper = Open(arguments);
  if (!helper) return console.Complain(helper.error());
  console.Info(fmt::format("machined listens on {} for user {}", arguments.socket, arguments.user));
  if (auto served = (*helper)->Run(interrupt.token()); !served) {
    return console.Complain(served.error());
  }
  return ExitCode::kOk;
}

}  // namespace caisson::cli
