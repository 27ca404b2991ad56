// SPDX-License-Identifier: Apache-2.0
// Lives of machines whose helper is killed at any moment: nothing is left, and nobody was told an
// untruth.
#include <gtest/gtest.h>

#include "machine/firecracker/machines/test_firecracker.h"

namespace caisson::machine::firecracker {
namespace {

TEST_F(FirecrackerMachines, LivesLeaveNothingWhereverTheHelperIsKilled) {
  Start();
  LiveThroughCrashes(*helper_, *driver_, Spec("life"), 6);
}

}  // namespace
}  // namespace caisson::machine::firecracker
