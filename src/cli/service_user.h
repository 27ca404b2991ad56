// SPDX-License-Identifier: Apache-2.0
// The unprivileged user that the service is.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/status.h"

namespace caisson::cli {

struct ServiceUser {
  uid_t uid = 0;
  gid_t gid = 0;
};

// Of a name or a number; without one: the user "caisson" where there is one, else a number that
// systems leave free. Fails with cli.usage for a name that does not exist, and for root.
Result<ServiceUser> FindServiceUser(const std::optional<std::string>& wanted);

// Gives up root for good: groups, user, capabilities. Fails with os.syscall when anything of it
// could be had back.
Result<void> BecomeServiceUser(const ServiceUser& user);

// Makes the directory for that user alone when it is missing.
Result<void> MakeServiceDirectory(const std::string& path, const ServiceUser& user);

}  // namespace caisson::cli
