// SPDX-License-Identifier: Apache-2.0
#include "isolate/micropython/class_tree.h"

#include "isolate/micropython/layout.h"

namespace caisson::isolate {
namespace {

// Remembering a type takes memory of ours, which is counted as so many steps.
constexpr std::uint64_t kNewType = 1024;

}  // namespace

std::optional<std::uint32_t> ClassTree::Known(std::uint32_t type) const {
  if (type == layout::kTypeObject) return 0;
  if ((memory_.Word(type + 4) & layout::kTypeFlagInstance) == 0) return type;
  const auto found = known_.find(type);
  if (found == known_.end()) return std::nullopt;
  return found->second;
}

ClassTree::Visit ClassTree::Enter(std::uint32_t type) const {
  const auto slot = memory_.Read<std::uint8_t>(type + layout::kTypeParentSlotByte);
  if (slot == 0) return {.type = type};
  const std::uint32_t at = type + layout::kTypeSlots + 4 * (slot - 1u);
  const std::uint32_t parent = memory_.Word(at);
  if (memory_.Word(parent) != layout::kTypeTuple) return {.type = type, .bases = at, .left = 1};
  return {.type = type, .bases = parent + 8, .left = memory_.Word(parent + 4)};
}

std::optional<std::uint32_t> ClassTree::NativeBase(std::uint32_t type) {
  path_.clear();
  for (std::uint32_t next = type;;) {
    if (!meter_.Spend(1)) return std::nullopt;
    std::optional<std::uint32_t> native = Known(next);
    if (!native) {
      if (!meter_.Spend(kNewType)) return std::nullopt;
      known_.emplace(next, 0);  // what comes back to it finds nothing more there
      path_.push_back(Enter(next));
    }
    // A base that derives from a built-in type decides for all that derive from it.
    while (native && !path_.empty() && (*native != 0 || path_.back().left == 0)) {
      known_[path_.back().type] = *native;
      path_.pop_back();
    }
    if (native && path_.empty()) return native;
    if (!native && path_.back().left == 0) continue;
    Visit& visit = path_.back();
    next = memory_.Word(visit.bases);
    visit.bases += 4;
    --visit.left;
  }
}

}  // namespace caisson::isolate
