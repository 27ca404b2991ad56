// SPDX-License-Identifier: Apache-2.0
// Network namespaces that outlive their makers, by a bind mount, and work done inside of one. The
// calling thread never changes its own namespace.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::os {

// Runs `work` to its end on a thread of its own in the namespace. Sockets opened there, and
// programs started there, stay there. Fails with os.syscall, or as `work` does.
Result<void> InNetworkNamespace(int namespace_fd, const std::function<Result<void>()>& work);

// A new namespace in which only lo is up; `prepare` runs inside before anybody else can. Kept by a
// bind mount on `path`, which is made (its directory must exist and be on a mount that is ours).
// Needs CAP_SYS_ADMIN. On failure nothing is left.
Result<UniqueFd> MakeNetworkNamespace(const std::string& path,
                                      const std::function<Result<void>()>& prepare);

// The namespace kept at `path`. Fails with os.syscall, also when none is mounted there.
Result<UniqueFd> OpenNetworkNamespace(const std::string& path);

// Lets go of the namespace at `path`; it ends with its last process. Nothing there is fine.
Result<void> DropNetworkNamespace(const std::string& path);

}  // namespace caisson::os
