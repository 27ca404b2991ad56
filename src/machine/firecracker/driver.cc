// SPDX-License-Identifier: Apache-2.0
#include "machine/firecracker/driver.h"

#include <utility>

#include "machine/firecracker/yard.h"
#include "machine/microvm/driver.h"

namespace caisson::machine::firecracker {

Result<std::unique_ptr<LocalDriver>> OpenFirecracker(const FirecrackerOptions& options,
                                                     SharedParts parts) {
  CAISSON_ASSIGN(std::unique_ptr<microvm::Yard> yard,
                 FirecrackerYard::Open(options, std::move(parts)));
  return microvm::DriverOf(std::move(yard), "firecracker",
                           "a kernel of its own below Firecracker and KVM");
}

}  // namespace caisson::machine::firecracker
