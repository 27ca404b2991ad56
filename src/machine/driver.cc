// SPDX-License-Identifier: Apache-2.0
#include "machine/driver.h"

namespace caisson::machine {

std::string_view NameOf(State state) {
  switch (state) {
    case State::kRunning:
      return "running";
    case State::kPausedInMemory:
      return "paused_in_memory";
    case State::kPausedOnDisk:
      return "paused_on_disk";
    case State::kStopped:
      return "stopped";
  }
  return "";
}

}  // namespace caisson::machine
