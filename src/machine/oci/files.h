// SPDX-License-Identifier: Apache-2.0
// Files of the host that machines in containers are made with. Thread-safe.
#pragma once

#include <string>

#include "base/status.h"
#include "json/value.h"
#include "os/fd.h"

namespace caisson::machine::oci {

// Fine when it is there. Fails with machine.full, machine.state.
Result<void> MakeDirectory(const std::string& path);
// Fails with machine.state.
Result<void> RemoveAll(const std::string& path);
// Fails with machine.full, machine.state.
Result<void> WriteConfig(const std::string& path, const json::Value& config);
// The program on a mount of its own that cannot be written. Fails with machine.unavailable.
Result<os::UniqueFd> OpenAgent(const std::string& path);

}  // namespace caisson::machine::oci
