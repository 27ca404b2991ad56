// SPDX-License-Identifier: Apache-2.0
// The walls of a jail by name: which there are, which of them a run cannot do without, and what to
// do when one does not stand. No kernel calls here.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace caisson::jail {

enum class Wall : std::uint8_t {
  kUserNamespace,
  kPidNamespace,
  kMountNamespace,
  kNetworkNamespace,
  kIpcNamespace,
  kUtsNamespace,
  kCgroupNamespace,
  kEmptyRoot,
  kCleanStart,  // no environment, no descriptor but the named ones
  kNoNewPrivileges,
  kCapabilities,
  kUnprivilegedUser,
  kResourceLimits,
  kLandlock,
  kSeccomp,
  kMemoryCgroup,
  kCpuCgroup,
  kPidsCgroup,
};
inline constexpr std::size_t kWallCount = 18;

struct WallInfo {
  Wall wall;
  std::string_view name;  // "network_namespace"
  bool mandatory;
  std::string_view keeps_out;   // what it is for, in a few words
  std::string_view what_to_do;  // when it does not stand
};
std::span<const WallInfo> AllWalls();
const WallInfo& InfoOf(Wall wall);

class WallSet {
 public:
  constexpr WallSet() = default;
  constexpr WallSet(std::initializer_list<Wall> walls) {
    for (Wall wall : walls) Add(wall);
  }
  constexpr void Add(Wall wall) { bits_ |= 1u << static_cast<unsigned>(wall); }
  constexpr bool Has(Wall wall) const { return (bits_ >> static_cast<unsigned>(wall) & 1) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr std::uint32_t bits() const { return bits_; }
  static constexpr WallSet FromBits(std::uint32_t bits) {
    WallSet set;
    set.bits_ = bits & ((1u << kWallCount) - 1);
    return set;
  }

 private:
  std::uint32_t bits_ = 0;
};

struct WallReport {
  std::string name;
  bool stands = false;
  bool mandatory = false;
  std::string reason;      // why it does not stand; or a detail of how it does
  std::string what_to_do;  // empty when it stands
};
WallReport Standing(Wall wall, std::string detail = {});
WallReport Missing(Wall wall, std::string reason);

// The Status (jail.unavailable) of a run that needed `wall`.
std::unexpected<Status> Unavailable(Wall wall, std::string_view reason);

// Dangerous grants: whoever opens something must name one of these types, so that a search for them
// finds every opening.
//
// Run without the walls that this host does not give. The others still go up.
struct AllowUnjailed {
  explicit AllowUnjailed() = default;
};
// Leave out walls that this host would give. For tests that show what a wall is good for.
struct DangerouslyLeaveOut {
  WallSet walls;
};

}  // namespace caisson::jail
