// SPDX-License-Identifier: Apache-2.0
// The life of caisson-vmm behind its walls: starts QEMU, carries connections to the agent through
// its virtual serial port, and does what the helper asks. Ends when QEMU does.
#pragma once

#include "machine/microvm/plan.h"

namespace caisson::machine::microvm {

[[noreturn]] void Keep(const Plan& plan);

}  // namespace caisson::machine::microvm
