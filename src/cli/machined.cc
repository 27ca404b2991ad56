// SPDX-License-Identifier: Apache-2.0
// caisson machined: the helper that makes machines, as root, for a service that is not.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/machine_drivers.h"
#include "cli/prepared_vm.h"
#include "cli/service_user.h"
#include "errors/machine.h"
#include "images/store.h"
#include "machine/helper/server.h"
#include "machine/machines.h"
#include "machine/microvm/boot_files.h"
#include "machine/networks.h"
#include "os/service_manager.h"

namespace caisson::cli {
namespace {

std::vector<machine::microvm::PreparedShape> PreparedVms(const MachinedArguments& arguments) {
  std::vector<machine::microvm::PreparedShape> shapes;
  for (const std::string& text : arguments.prepared_vms) {
    const auto vm = ParsePreparedVm(text);  // looked at when the command line was read
    if (vm) shapes.push_back({vm->image, vm->cpus, vm->memory_bytes});
  }
  return shapes;
}

Result<std::unique_ptr<machine::helper::Server>> Open(const MachinedArguments& arguments,
                                                      Console& console) {
  if (::geteuid() != 0) {
    return Fail(errors::kMachineUnavailable, "machines are made by root; run this with sudo");
  }
  std::shared_ptr<machine::Networks> networks = machine::NoNetworks();
  if (!arguments.without_network) {
    egress::GatewayOptions gateway{.directory = arguments.network};
    gateway.start_gate = egress::GateProcess::Start;
    CAISSON_ASSIGN(networks, machine::GatewayNetworks(gateway));
    if (const std::string why = networks->WhyNoNames(); !why.empty()) {
      console.Info("machined refuses rules by host name: " + why);
    }
  }
  const machine::SharedParts parts{.networks = networks,
                                   .ids = std::make_shared<machine::IdRanges>()};
  // Those of other drivers stand below it.
  (void)::mkdir(arguments.state.c_str(), 0700);
  const auto known = KnownDrivers(
      {.state = arguments.state,
       .images = arguments.images.value_or(images::Store::DefaultDirectory()),
       .agent = arguments.agent.value_or(AgentBesideThisProgram()),
       .prepared = arguments.prepared,
       .builders = arguments.builders,
       .oci_runtime = arguments.oci_runtime,
       .not_prepared =
           [&console](const Status& failure) {
             console.Warn("a machine that shall wait ready could not be made: " + failure.message);
           },
       .kernel = arguments.kernel.value_or(machine::microvm::DefaultKernelDirectory()),
       .allow_emulation = arguments.allow_emulation,
       .prepared_vms = PreparedVms(arguments),
       .waiting_vms = arguments.waiting_vms,
       .max_vm_templates = arguments.max_vm_templates,
       .max_vm_template_bytes = arguments.max_vm_template_bytes});
  machine::MachinesByDriver drivers;
  std::vector<std::string> names = arguments.drivers;
  if (names.empty()) names.emplace_back("jail");
  for (const std::string& name : names) {
    if (drivers.contains(name)) continue;
    CAISSON_ASSIGN(auto driver, known.at(name)(parts));
    CAISSON_ASSIGN(drivers[name], machine::Machines::Open(std::move(driver), networks));
  }
  CAISSON_TRY(machine::RemoveStrays(*networks, drivers));
  CAISSON_ASSIGN(const ServiceUser user, FindServiceUser(arguments.user));
  return machine::helper::Server::Listen(std::move(drivers), arguments.socket, user.uid);
}

}  // namespace

ExitCode Machined(const MachinedArguments& arguments, Console& console) {
  const Interrupt interrupt(console);
  auto helper = Open(arguments, console);
  if (!helper) return console.Complain(helper.error());
  console.Info(fmt::format("machined listens on {} for user {}", arguments.socket, arguments.user));
  os::TellServiceManager("READY=1");
  if (auto served = (*helper)->Run(interrupt.token()); !served) {
    return console.Complain(served.error());
  }
  return ExitCode::kOk;
}

}  // namespace caisson::cli
