// SPDX-License-Identifier: Apache-2.0
// Machines whose processes are the host's own, as those of jails and containers are: cgroups make
// them stand still, and what is kept of them is their disk (machine/disk.h), mounted here.
#pragma once

#include <string>

#include "machine/flusher.h"
#include "machine/recorded_machine.h"

namespace caisson::machine {

class ContainedMachine : public RecordedMachine {
 public:
  Result<void> Pause(Level level) override;
  Result<void> Resume() override;
  Result<void> Keep(const std::string& directory, Extent most) override;
  Result<void> Resize(std::uint64_t disk_bytes) override;

 protected:
  virtual std::string disk() const = 0;
  virtual const images::Store& store() const = 0;
  virtual Flusher& flusher() = 0;
  // Ends what runs; the disk stays, and nothing uses it.
  virtual Result<void> Stop() = 0;
  // Lets one go on that is paused in memory.
  virtual Result<void> GoOn() { return base().record.groups.Thaw(); }
  // Starts a machine of which there is only the disk, and its image; else there is only the disk.
  virtual Result<void> StartAgain() = 0;

 private:
  Result<void> Freeze();
  Result<void> StopOnDisk();
};

}  // namespace caisson::machine
