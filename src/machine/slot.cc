// SPDX-License-Identifier: Apache-2.0
#include "machine/slot.h"

#include <utility>

#include "errors/machine.h"

namespace caisson::machine {

Result<void> SlotBase::HoldImage(const images::Store& store) {
  if (image) return {};
  auto held = store.Hold(record.spec.image);
  if (!held) return Fail(errors::kMachineNoImage, held.error().message);
  image = *std::move(held);
  return {};
}

Found FindSlot(const StateDirectory& state, const std::string& name, IdRanges& ids,
               const images::Store& store, SlotBase& slot) {
  slot.directory = state.machines() + "/" + name;
  auto record = ReadRecord(slot.directory, name);
  if (!record) return Found::kUnreadable;
  slot.record = *std::move(record);
  ids.Claim(slot.record.index);
  if (slot.record.phase == Phase::kMaking || slot.record.phase == Phase::kRemoving) {
    return Found::kUnfinished;
  }
  (void)slot.HoldImage(store);
  return Found::kKept;
}

}  // namespace caisson::machine
