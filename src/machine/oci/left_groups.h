// SPDX-License-Identifier: Apache-2.0
// Groups that container runtimes make by themselves, in hierarchies that we do not use, below the
// group in which they were started.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace caisson::machine::oci {

// The groups that this process is in, each once: "/system.slice/caisson.service". `own_groups` is
// the text of /proc/self/cgroup.
std::vector<std::string> OwnGroups(const std::string& own_groups);

// Removes the groups called `name` below `parents` in every hierarchy that `mountinfo` (the text of
// /proc/self/mountinfo) has; fine when there are none. They have no processes any more; one that is
// in use a moment longer is waited for.
Result<void> RemoveLeftGroups(const std::string& name, const std::vector<std::string>& parents,
                              const std::string& mountinfo);

}  // namespace caisson::machine::oci
