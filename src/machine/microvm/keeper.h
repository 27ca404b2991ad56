// SPDX-License-Identifier: Apache-2.0
// The life of caisson-vmm behind its walls: starts the monitor, carries connections to the agent
// over the one stream that leads there, and does what the helper asks. Ends when the monitor does.
#pragma once

#include "machine/microvm/monitor.h"
#include "machine/microvm/plan.h"

namespace caisson::machine::microvm {

[[noreturn]] void Keep(const Plan& plan, Monitor& monitor);

}  // namespace caisson::machine::microvm
