// SPDX-License-Identifier: Apache-2.0
// caisson machined: the helper that makes machines, as root, for a service that is not.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "errors/machine.h"
#include "images/store.h"
#include "machine/jail/helper.h"
#include "machine/jail/machines.h"
#include "machine/jail/networks.h"

namespace caisson::cli {
namespace {

namespace jail = machine::jail;

std::string BesideThisProgram(const char* name) {
  std::array<char, 4096> path{};
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size());
  std::string self(path.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  return self.substr(0, self.rfind('/') + 1) + name;
}

Result<std::unique_ptr<jail::Helper>> Open(const MachinedArguments& arguments) {
  if (::geteuid() != 0) {
    return Fail(errors::kMachineUnavailable, "machines are made by root; run this with sudo");
  }
  jail::MachinesOptions options;
  options.workshop.state = arguments.state;
  options.workshop.images = arguments.images.value_or(images::Store::DefaultDirectory());
  options.workshop.agent = arguments.agent.value_or(BesideThisProgram("caisson-agent"));
  options.prepared = arguments.prepared;
  options.threads = arguments.builders;
  std::unique_ptr<jail::Networks> networks = jail::NoNetworks();
  if (!arguments.without_network) {
    CAISSON_ASSIGN(networks, jail::GatewayNetworks({.directory = arguments.network}));
  }
  CAISSON_ASSIGN(std::unique_ptr<jail::Machines> machines,
                 jail::Machines::Open(options, std::move(networks)));
  return jail::Helper::Listen(std::move(machines), arguments.socket, arguments.user);
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
