// SPDX-License-Identifier: Apache-2.0
// Machines that are jails: processes of this host behind every wall of its kernel (docs/machines.md
// lists them). Needs root.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "machine/jail/slot.h"
#include "machine/local.h"

namespace caisson::machine::jail {

struct JailOptions {
  WorkshopOptions workshop;
  std::size_t prepared = 8;  // machines that wait, of each kind
  std::size_t threads = 8;   // that make them
  // Told when one that waits could not be made: nobody has asked for it, so nobody else hears of
  // it. On any thread, at most every ten seconds for each kind. May be empty.
  std::function<void(const Status&)> not_prepared;
};

// Fails with machine.unavailable, which says what is missing, and machine.state.
Result<std::unique_ptr<LocalDriver>> OpenJail(const JailOptions& options, SharedParts parts);

}  // namespace caisson::machine::jail
