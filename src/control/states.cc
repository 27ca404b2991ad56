// SPDX-License-Identifier: Apache-2.0
#include "control/states.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace caisson::control {
namespace {

using enum SandboxState;
using enum SandboxEvent;

struct Transition {
  SandboxState from;
  SandboxEvent event;
  SandboxState to;
};

constexpr Transition kTransitions[] = {
    {kCreating, kBooted, kRunning},      {kCreating, kBootedPaused, kPaused},
    {kCreating, kBootFailed, kFailed},   {kCreating, kDelete, kDestroying},

    {kForking, kBooted, kRunning},       {kForking, kBootedPaused, kPaused},
    {kForking, kBootFailed, kFailed},    {kForking, kDelete, kDestroying},

    {kRunning, kPause, kPausing},        {kRunning, kStopped, kError},
    {kRunning, kLost, kFailed},          {kRunning, kDelete, kDestroying},

    {kPausing, kPauseDone, kPaused},     {kPausing, kPauseUndone, kRunning},
    {kPausing, kLost, kFailed},          {kPausing, kDelete, kDestroying},

    {kPaused, kResume, kResuming},       {kPaused, kLost, kFailed},
    {kPaused, kDelete, kDestroying},

    {kResuming, kResumed, kRunning},     {kResuming, kResumeFailed, kError},
    {kResuming, kLost, kFailed},         {kResuming, kDelete, kDestroying},

    {kError, kResume, kResuming},        {kError, kLost, kFailed},
    {kError, kDelete, kDestroying},

    {kDestroying, kDelete, kDestroying}, {kDestroying, kDeleted, kDestroyed},

    {kFailed, kDelete, kDestroyed},      {kDestroyed, kDelete, kDestroyed},
};

constexpr std::array<std::string_view, 13> kEvents{
    "booted",  "booted_paused", "boot_failed", "pause", "pause_done", "pause_undone", "resume",
    "resumed", "resume_failed", "stopped",     "lost",  "delete",     "deleted"};

}  // namespace

std::string_view ToText(SandboxEvent event) { return kEvents[static_cast<std::size_t>(event)]; }

std::optional<SandboxState> Next(SandboxState state, SandboxEvent event) {
  const auto* found = std::ranges::find_if(kTransitions, [&](const Transition& transition) {
    return transition.from == state && transition.event == event;
  });
  if (found == std::end(kTransitions)) return std::nullopt;
  return found->to;
}

}  // namespace caisson::control
