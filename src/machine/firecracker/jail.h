// SPDX-License-Identifier: Apache-2.0
// How the jailer is called, and where it makes its jail (docs/jailer.md of Firecracker).
#pragma once

#include <string>
#include <vector>

#include "machine/microvm/plan.h"

namespace caisson::machine::firecracker {

// The directory that becomes Firecracker's root, below plan.scratch.
std::string JailOf(const microvm::Plan& plan);
std::vector<std::string> JailerCommand(const microvm::Plan& plan);

}  // namespace caisson::machine::firecracker
