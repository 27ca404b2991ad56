// SPDX-License-Identifier: Apache-2.0
// The files by which the programs of a machine know its name, its address and who answers for
// names.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "machine/driver.h"

namespace caisson::machine {

// Path and content. `first_time`: else only what may have changed since the machine was started
// last. `ip` may be empty.
std::vector<std::pair<std::string, std::string>> IdentityFiles(
    const MachineSpec& spec, const std::string& ip, const std::vector<std::string>& name_servers,
    bool first_time);

}  // namespace caisson::machine
