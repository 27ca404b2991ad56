// SPDX-License-Identifier: Apache-2.0
// The life of a sandbox as one table: which event leads from which state to which. Nothing else in
// the program decides that; control/sandboxes.h writes each step to the store before it acts on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "store/store.h"

namespace caisson::control {

using store::SandboxState;

enum class SandboxEvent : std::uint8_t {
  kBooted,        // its machine runs and answers
  kBootedPaused,  // a fork that was asked to stay paused
  kBootFailed,    // no machine came to be, and nothing of one is left
  kPause,
  kPauseDone,
  kPauseUndone,  // it runs on: the pause failed, or somebody began to use it
  kResume,
  kResumed,
  kResumeFailed,
  kStopped,  // its processes were ended from outside; its disk is there
  kLost,     // its machine is gone and nothing of it can be had back
  kDelete,
  kDeleted,
};
std::string_view ToText(SandboxEvent event);

// Empty when the event is not allowed in that state.
std::optional<SandboxState> Next(SandboxState state, SandboxEvent event);

// Commands, files, processes and connections may be used.
inline bool IsUsable(SandboxState state) { return state == SandboxState::kRunning; }

}  // namespace caisson::control
