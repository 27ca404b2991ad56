// SPDX-License-Identifier: Apache-2.0
// Machines that are virtual machines: a kernel of their own below QEMU (machine type microvm), with
// KVM where a trial boot comes up, else with an emulated processor where the operator allows that
// (docs/machines.md). Needs root.
#pragma once

#include <memory>

#include "base/status.h"
#include "machine/local.h"
#include "machine/microvm/yard.h"

namespace caisson::machine::microvm {

// Fails with machine.unavailable, which says what is missing, and machine.state.
Result<std::unique_ptr<LocalDriver>> OpenMicrovm(const MicrovmOptions& options, SharedParts parts);

}  // namespace caisson::machine::microvm
