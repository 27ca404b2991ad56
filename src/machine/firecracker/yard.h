// SPDX-License-Identifier: Apache-2.0
// What the virtual machines of Firecracker use together (machine/microvm/yard.h).
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "machine/firecracker/binaries.h"
#include "machine/firecracker/driver.h"
#include "machine/microvm/yard.h"

namespace caisson::machine::firecracker {

class FirecrackerYard final : public microvm::Yard {
 public:
  static Result<std::unique_ptr<microvm::Yard>> Open(const FirecrackerOptions& options,
                                                     SharedParts parts);

  // The saved state of one version is not another's.
  std::string boot_id() const override;
  std::string monitor() const override;
  bool saves_whole() const override { return true; }

 private:
  FirecrackerYard(const FirecrackerOptions& options, SharedParts parts, images::Store store,
                  StateDirectory state)
      : Yard(options.machines, std::move(parts), std::move(store), std::move(state)),
        options_(options) {}
  Result<void> FindMonitor() override;
  Result<void> ChooseAccelerator() override;
  Result<void> TryKvm() const override;
  Result<microvm::BootFiles> MakeBoot(const std::string& directory) const override;
  Result<TapPlace> MakeNetwork(const microvm::Slot& slot) override;
  Result<void> Complete(microvm::Plan& plan, const microvm::Slot& slot,
                        const TapPlace& tap) const override;
  Result<void> AfterStart(const microvm::Slot& slot) override;
  std::uint64_t reserve() const override;

  const FirecrackerOptions options_;
  Binaries binaries_;
};

}  // namespace caisson::machine::firecracker
