// SPDX-License-Identifier: Apache-2.0
// Maps of user and group ids for a child in a new user namespace.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::os {

// The id that a sealed process takes when ids can be chosen: "nobody", which owns nothing.
inline constexpr unsigned kNobody = 65534;

enum class IdMap : unsigned char {
  kWhole,  // every id that we have, onto itself: the child may choose another id later
  kSelf,   // one id inside is our own effective id outside, and there is no other
};

// Writes the maps of `child`, which must wait until this has returned. Takes kWhole when our
// capabilities allow it, else kSelf with the id `self_inside`; says which. A child that is to make
// further user namespaces without privileges must not be 0 there: whoever is may not be mapped.
Result<IdMap> WriteIdMaps(pid_t child, unsigned self_inside = 0);

// A user namespace without processes in which the ids 0 to count-1 are those from `first` on here:
// for mounts that show files under other owners (mount_setattr(2)). Needs CAP_SETUID and
// CAP_SETGID. Fails with os.syscall.
Result<UniqueFd> MakeIdMap(std::uint32_t first, std::uint32_t count);

}  // namespace caisson::os
