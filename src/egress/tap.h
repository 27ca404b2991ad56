// SPDX-License-Identifier: Apache-2.0
// The end of a link whose other end is a program: a virtual machine's monitor reads and writes the
// frames by a descriptor, and needs no rights over any network for it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/status.h"
#include "egress/links.h"
#include "os/fd.h"

namespace caisson::egress {

// In the calling thread's network namespace; down. It stays when the descriptor is closed, until it
// is removed (Links::Remove). With an `owner`, that user can open it by its name later. Fails with
// os.syscall.
Result<os::UniqueFd> MakeTap(const LinkEnd& end, std::optional<uid_t> owner = std::nullopt);

// "02:ca:15:50:00:03"
std::string FormatMac(const Mac& mac);

}  // namespace caisson::egress
