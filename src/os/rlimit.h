// SPDX-License-Identifier: Apache-2.0
// Resource limits. Hard ones are only ever lowered: raising one needs CAP_SYS_RESOURCE, and a jail
// that asks for it fails in containers.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace caisson::os {

// Sets soft and hard limit of `resource` (RLIMIT_…) to min(`value`, the present hard limit).
Result<void> LowerLimit(int resource, std::uint64_t value);

// Makes the soft limit of `resource` `value` where it is lower, as far as the hard limit allows.
// Returns what it is then (RLIM_INFINITY when there is none).
Result<std::uint64_t> RaiseSoftLimit(int resource, std::uint64_t value);

}  // namespace caisson::os
