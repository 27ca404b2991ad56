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
    return GoOn();
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

}  // namespace caisson::machine
