// SPDX-License-Identifier: Apache-2.0
// Machines that are virtual machines below Firecracker and KVM (docs/machines.md). All but the
// monitor is that of machine/microvm. Needs root. Tested against a double of Firecracker that
// checks every request by its API description (fake/), and not on hardware.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "machine/local.h"
#include "machine/microvm/yard.h"

namespace caisson::machine::firecracker {

struct FirecrackerOptions {
  // Of these nothing that is QEMU's is looked at, and an emulated processor is never taken.
  microvm::MicrovmOptions machines;
  std::string firecracker;  // programs; empty: firecracker and jailer in PATH
  std::string jailer;
  std::string kvm = "/dev/kvm";  // which must open; the jailer makes its own inside of the jail
};

// Fails with machine.unavailable, which says what is missing, and machine.state. Nothing weaker is
// taken in place of what is missing.
Result<std::unique_ptr<LocalDriver>> OpenFirecracker(const FirecrackerOptions& options,
                                                     SharedParts parts);

}  // namespace caisson::machine::firecracker
