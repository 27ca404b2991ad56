// SPDX-License-Identifier: Apache-2.0
// Which walls stand on this host, found out by putting them up in a child, for `caisson doctor`.
#pragma once

#include <vector>

#include "jail/walls.h"

namespace caisson::jail {

// One report per wall, in the order of `Wall`. Blocks for some milliseconds. Call it while the
// process has one thread; never fails, at worst every report says why nothing could be tried.
std::vector<WallReport> ProbeWalls();

}  // namespace caisson::jail
