// SPDX-License-Identifier: Apache-2.0
// What machines of every driver do alike, since it follows from their record and their network.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/status.h"
#include "machine/local.h"
#include "machine/slot.h"

namespace caisson::machine {

class RecordedMachine : public LocalMachine {
 public:
  uid_t owner() const override { return base().record.owner; }
  std::uint32_t network() const override { return base().record.network; }
  Machine View() override;
  Result<void> Remove() override;
  Result<void> SetNetwork(const egress::Policy& policy, SentCap cap) override;
  Result<void> SetSharedNetworks(const std::set<std::string>& networks) override;

 protected:
  virtual SlotBase& base() const = 0;
  virtual Networks& networks() = 0;
  // Whether its processes, or what runs it, are there.
  virtual bool Lives() = 0;
  // Takes everything of the slot away. Can be called again after a failure.
  virtual Result<void> TakeAway() = 0;

  State StateNow();
  // On failure of the write the machine has the new phase, and its record perhaps not.
  Result<void> SetPhase(Phase phase, bool durable);
  // By its record, its cgroups and its network.
  Result<Stats> StatsWith(std::uint64_t disk_used_bytes);
};

}  // namespace caisson::machine
