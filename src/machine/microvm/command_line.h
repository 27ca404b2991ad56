// SPDX-License-Identifier: Apache-2.0
// QEMU's command line for a machine, seen from inside its walls. The same for a template and for
// what goes on from it, but for where memory comes from: QEMU loads a state only into the same
// devices.
#pragma once

#include <string>
#include <vector>

#include "machine/microvm/plan.h"

namespace caisson::machine::microvm {

struct QemuDescriptors {
  int monitor = -1;
  int port = -1;  // of the agent
  int tap = -1;
};

// Where the memory is; a template's is on a tmpfs until it is saved.
std::string MemoryFile(const Plan& plan);

std::vector<std::string> QemuCommand(const Plan& plan, const QemuDescriptors& descriptors);
// What the kernel is told, with the traps of emulated processors in mind.
std::string KernelCommand(const Plan& plan);
// What of the above makes templates other ones when it changes, but for the pace of this host.
std::string KindOfComputer(Accelerator accelerator);

}  // namespace caisson::machine::microvm
