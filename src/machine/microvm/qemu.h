// SPDX-License-Identifier: Apache-2.0
// QEMU as the monitor: a child of this process, asked by its monitor protocol; the agent is behind
// its virtual serial port.
#pragma once

#include <memory>

#include "machine/microvm/monitor.h"
#include "machine/microvm/plan.h"

namespace caisson::machine::microvm {

std::unique_ptr<Monitor> MakeQemu(const Plan& plan);

}  // namespace caisson::machine::microvm
