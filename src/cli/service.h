// SPDX-License-Identifier: Apache-2.0
// The commands of the service, one file each; see commands.h for what they have in common.
#pragma once

#include <string>

#include "cli/console.h"
#include "cli/service_arguments.h"
#include "errors/exit_codes.h"

namespace caisson::cli {

ExitCode Service(const ServiceArguments& arguments, Console& console);

ExitCode ServeApi(const ServeArguments& arguments, Console& console);
ExitCode Keys(const KeysArguments& arguments, Console& console);
ExitCode Tenants(const TenantsArguments& arguments, Console& console);
ExitCode PrintShapes(const ShapesArguments& arguments, Console& console);
ExitCode Sandbox(const SandboxArguments& arguments, Console& console);

// The state directory: as given, else /var/lib/caisson for root, else $XDG_STATE_HOME/caisson or
// ~/.local/state/caisson.
std::string StateDirectory(const std::optional<std::string>& given);

}  // namespace caisson::cli
