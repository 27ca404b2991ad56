// SPDX-License-Identifier: Apache-2.0
#include "machine/contained_machine.h"

#include "machine/disk.h"

namespace caisson::machine {

Result<void> ContainedMachine::Freeze() {
  CAISSON_TRY(SetPhase(Phase::kPausedInMemory, false));
  if (auto frozen = base().record.groups.Freeze(); !frozen) {
    (void)SetPhase(Phase::kRunning, false);
    return frozen;
  }
  flusher().Add(disk());
  return {};
}

Result<void> ContainedMachine::StopOnDisk() {
  CAISSON_TRY(SetPhase(Phase::kPausedOnDisk, true));
  CAISSON_TRY(Stop());
  return SyncDisk(disk());
}

Result<void> ContainedMachine::Pause(Level level) {
  return level == Level::kMemory ? Freeze() : StopOnDisk();
}

Result<void> ContainedMachine::Resume() {
  if (StateNow() == State::kPausedInMemory) {
    CAISSON_TRY(SetPhase(Phase::kRunning, false));
    return base().record.groups.Thaw();
  }
  CAISSON_TRY(base().HoldImage(store()));
  base().record.phase = Phase::kPausedOnDisk;
  CAISSON_TRY(Stop());  // what is left of a machine that ended by itself
  return StartAgain();
}

// There is nothing but the disk.
Result<void> ContainedMachine::Keep(const std::string& directory, Extent) {
  const bool running = StateNow() == State::kRunning;
  // Still, so that files which belong together are kept together.
  if (running) CAISSON_TRY(base().record.groups.Freeze());
  auto kept = [&]() -> Result<void> {
    CAISSON_ASSIGN(const FrozenDisk frozen, FrozenDisk::Freeze(disk()));
    return CopyDisk(disk(), directory + "/disk.img");
  }();
  if (running) CAISSON_TRY(base().record.groups.Thaw());
  return kept;
}

Result<void> ContainedMachine::Resize(std::uint64_t disk_bytes) {
  CAISSON_TRY(GrowDisk(disk(), disk_bytes));
  base().record.spec.disk_bytes = disk_bytes;
  return base().Write(true);
}

// A helper that is killed in between leaves no network open that the record does not name.
Result<void> ContainedMachine::SetSharedNetworks(const std::set<std::string>& shared) {
  Record& record = base().record;
  const std::set<std::string> before = record.spec.shared_networks;
  record.spec.shared_networks.insert(shared.begin(), shared.end());
  if (record.spec.shared_networks != before) CAISSON_TRY(base().Write(false));
  if (record.network != 0) {
    if (auto applied = networks().Share(record.network, record.owner, shared); !applied) {
      record.spec.shared_networks = before;
      (void)base().Write(false);
      return applied;
    }
  }
  record.spec.shared_networks = shared;
  if (shared == before) return {};
  auto written = base().Write(true);
  if (written) return {};
  record.spec.shared_networks = before;
  if (record.network != 0) (void)networks().Share(record.network, record.owner, before);
  return written;
}

}  // namespace caisson::machine
