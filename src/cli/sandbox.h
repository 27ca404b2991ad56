// SPDX-License-Identifier: Apache-2.0
// The actions of `caisson sandbox`, in several files. Each gives the exit code of the command,
// which for exec and shell is that of what ran.
#pragma once

#include "cli/console.h"
#include "cli/service_arguments.h"
#include "cli/service_client.h"
#include "errors/exit_codes.h"

namespace caisson::cli {

Result<ExitCode> SandboxCreate(const SandboxArguments&, ServiceClient&, Console&);
Result<ExitCode> SandboxFork(const SandboxArguments&, ServiceClient&, Console&);
Result<ExitCode> SandboxList(const SandboxArguments&, ServiceClient&, Console&);
Result<ExitCode> SandboxReap(const SandboxArguments&, ServiceClient&, Console&);
Result<ExitCode> SandboxExec(const SandboxArguments&, ServiceClient&, Console&);
Result<ExitCode> SandboxCopy(const SandboxArguments&, ServiceClient&, Console&);
Result<ExitCode> SandboxLogs(const SandboxArguments&, ServiceClient&, Console&);
Result<ExitCode> SandboxShell(const SandboxArguments&, ServiceClient&, Console&);
Result<ExitCode> SandboxEgress(const SandboxArguments&, ServiceClient&, Console&);
Result<ExitCode> SandboxNetworks(const SandboxArguments&, ServiceClient&, Console&);
Result<ExitCode> SandboxJoin(const SandboxArguments&, ServiceClient&, Console&);

// KEY=VALUE, or KEY as it is in this process's environment. Fails with cli.usage.
Result<json::Object> ReadPairs(const std::vector<std::string>& pairs, const char* option,
                               bool from_environment);

}  // namespace caisson::cli
