// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <array>

namespace caisson::store {
namespace {

constexpr std::array<std::string_view, 10> kSandboxStates{
    "creating", "running", "pausing",    "paused",    "resuming",
    "forking",  "error",   "destroying", "destroyed", "failed"};
constexpr std::array<std::string_view, 3> kPoolPlaces{"none", "waiting", "parent"};
constexpr std::array<std::string_view, 4> kTemplateStates{"pending", "building", "ready", "failed"};

template <typename State, std::size_t kCount>
std::optional<State> Parse(const std::array<std::string_view, kCount>& names,
                           std::string_view text) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (names[i] == text) return static_cast<State>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view ToText(SandboxState state) {
  return kSandboxStates[static_cast<std::size_t>(state)];
}
std::optional<SandboxState> ParseSandboxState(std::string_view text) {
  return Parse<SandboxState>(kSandboxStates, text);
}
bool IsTerminal(SandboxState state) {
  return state == SandboxState::kDestroyed || state == SandboxState::kFailed;
}

std::string_view ToText(PoolPlace place) { return kPoolPlaces[static_cast<std::size_t>(place)]; }
std::optional<PoolPlace> ParsePoolPlace(std::string_view text) {
  return Parse<PoolPlace>(kPoolPlaces, text);
}

std::string_view ToText(TemplateState state) {
  return kTemplateStates[static_cast<std::size_t>(state)];
}
std::optional<TemplateState> ParseTemplateState(std::string_view text) {
  return Parse<TemplateState>(kTemplateStates, text);
}

}  // namespace caisson::store
