// SPDX-License-Identifier: Apache-2.0
// What every driver has of one machine, and finds again after an earlier helper. Each driver's own
// slot adds what holds its processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "images/store.h"
#include "machine/id_ranges.h"
#include "machine/record.h"
#include "machine/state.h"

namespace caisson::machine {

struct SlotBase {
  std::string directory;
  Record record;
  std::optional<images::HeldImage> image;  // not when it is missing from the store

  // As WriteRecord.
  Result<void> Write(bool durable) const { return WriteRecord(directory, record, durable); }
  // Fails with machine.no_image.
  Result<void> HoldImage(const images::Store& store);
};

enum class Found : std::uint8_t {
  kKept,
  kUnfinished,  // was being made or removed: to be removed
  kUnreadable,  // its record cannot be read, as after a power failure: to be set aside
};
// Reads what an earlier helper left of the machine in the directory `name`, and claims its ids.
Found FindSlot(const StateDirectory& state, const std::string& name, IdRanges& ids,
               const images::Store& store, SlotBase& slot);

}  // namespace caisson::machine
