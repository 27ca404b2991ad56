// SPDX-License-Identifier: Apache-2.0
// A failed system call as a Status (os.syscall): "mount tmpfs on /tmp: EPERM (Operation not
// permitted)"; os.open_files where descriptors have run out.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace caisson::os {

// "EPERM (Operation not permitted)".
std::string ErrnoText(int error);

// `what` says what was tried, on what. Takes errno unless `error` is given.
std::unexpected<Status> SyscallError(std::string_view what);
std::unexpected<Status> SyscallError(std::string_view what, int error);

}  // namespace caisson::os
