// SPDX-License-Identifier: Apache-2.0
// Machines that are virtual machines: a kernel of their own below QEMU (machine type microvm), with
// KVM where a trial boot comes up, else with an emulated processor where the operator allows that
// (docs/machines.md). Needs root. All but QEMU itself serves other monitors, too
// (machine/firecracker).
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "machine/local.h"
#include "machine/microvm/yard.h"

namespace caisson::machine::microvm {

// Fails with machine.unavailable, which says what is missing, and machine.state.
Result<std::unique_ptr<LocalDriver>> OpenMicrovm(const MicrovmOptions& options, SharedParts parts);

// The driver `name` over a yard with whatever monitor; `isolation`: for people.
std::unique_ptr<LocalDriver> DriverOf(std::unique_ptr<Yard> yard, std::string name,
                                      std::string isolation);

}  // namespace caisson::machine::microvm
