// SPDX-License-Identifier: Apache-2.0
// The process that a pool starts in a machine before it is handed out: a managed one, whose input
// stays open for whoever takes the machine. What it says is a guest's, and is trusted in nothing.
#pragma once

#include <functional>
#include <map>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "control/pool_definition.h"
#include "machine/driver.h"
#include "store/store.h"

namespace caisson::control {

// What commands in the sandbox have: that of a login shell of root, of its template, its own.
std::map<std::string, std::string> CommandEnvironment(const store::Sandbox& sandbox);
// Where they start.
std::string CommandDirectory(const store::Sandbox& sandbox);

// Starts it in a machine that runs, waits until it has written its ready line, and gives its
// process id. Fails with control.warm_failed (it could not be started, ended, or said nothing in
// time; the message has what it wrote last), control.draining when it is stopped, and as the
// agent's calls do. What was started goes on then: the machine is to be destroyed.
using WarmUp =
    std::function<Result<std::string>(machine::Driver& driver, const store::Sandbox& sandbox,
                                      const Warm& warm, const std::stop_token& stop)>;
Result<std::string> StartWarmProcess(machine::Driver& driver, const store::Sandbox& sandbox,
                                     const Warm& warm, const std::stop_token& stop);

// Whether the sandbox's warm process still runs. Fails with control.warm_failed, or as the agent's
// calls do.
using WarmCheck =
    std::function<Result<void>(machine::Driver& driver, const store::Sandbox& sandbox)>;
Result<void> CheckWarmProcess(machine::Driver& driver, const store::Sandbox& sandbox);

}  // namespace caisson::control
