// SPDX-License-Identifier: Apache-2.0
// Cgroups of version 1 and 2 alike, hybrids of both included. A new group is made below the
// caller's own (v1) or below the nearest group that hands the controller down (v2), so that limits
// which others have put on us keep their force. Never moves the caller. Not thread-safe per object.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace caisson::os {

enum class Controller : unsigned char { kMemory, kCpu, kPids };
inline constexpr std::array<Controller, 3> kControllers = {Controller::kMemory, Controller::kCpu,
                                                           Controller::kPids};
const char* ControllerName(Controller controller);

// Where a new group with one controller can be made.
struct ControllerPlace {
  Controller controller;
  int version = 0;     // 1 or 2; 0 when there is no place, for `reason`
  std::string parent;  // directory
  std::string reason;
};

// One entry per controller. Makes nothing.
std::array<ControllerPlace, 3> FindControllers();
// The same for a process whose /proc/self/mountinfo and /proc/self/cgroup have these texts.
std::array<ControllerPlace, 3> FindControllers(const std::string& mountinfo,
                                               const std::string& own_groups);

// The directory below which a group can be made in the hierarchy of version 2, whatever controllers
// that has: groups of it can be stopped and killed as a whole. Empty when there is none for us.
std::string FindUnifiedParent();
std::string FindUnifiedParent(const std::string& mountinfo, const std::string& own_groups);
// The same of the freezer of version 1.
std::string FindFreezerParent();
std::string FindFreezerParent(const std::string& mountinfo, const std::string& own_groups);

// The number that a file of cgroupfs holds or, with `key`, the one behind it on its line; 0 when it
// cannot be known.
std::uint64_t NumberIn(const std::string& path, std::string_view key = {});

struct CgroupLimits {
  std::uint64_t memory_bytes = 0;  // swap is not given in addition; 0: no limit
  double cpus = 0;                 // 1.5: one and a half cores; 0: no limit
  std::uint64_t pids = 0;          // threads count; 0: no limit
  bool operator==(const CgroupLimits&) const = default;
};

// One group in each hierarchy that is needed. Its directories are removed with the object, which
// requires that its processes have ended.
class Cgroup {
 public:
  Cgroup() = default;
  Cgroup(Cgroup&& other) noexcept { *this = std::move(other); }
  Cgroup& operator=(Cgroup&& other) noexcept;
  ~Cgroup() { Remove(); }

  // Makes what can be made: a controller that cannot be had is in refused(), with the reason, and
  // the others stand. `name` should begin with NamePrefix().
  static Cgroup Make(const std::string& name, const CgroupLimits& limits);
  // The group of this name that another program makes, or has made, below the same parents. Nothing
  // is made or limited; Remove removes it.
  static Cgroup Adopt(const std::string& name);
  // "caisson.<pid>-<start>-<pid namespace>.": tells later runs whose group it was; the start, in
  // clock ticks since boot, tells a process from a later one with its pid.
  static std::string NamePrefix();

  struct Swept {
    std::vector<std::string> removed;  // directories
    std::vector<std::string> left;     // in use, or not ours to remove
  };
  // Removes the empty groups of processes that are gone and could not do it themselves
  // (os/cgroup_reaper.h). Touches none of a process that is there, and none of
  // another pid namespace.
  static Swept Sweep();

  struct Refused {
    Controller controller;
    std::string reason;
  };
  const std::vector<Refused>& refused() const { return refused_; }
  const std::vector<std::string>& directories() const { return directories_; }

  Result<void> Attach(pid_t pid);
  std::uint64_t OomKills() const;         // 0 when it cannot be known
  std::uint64_t MemoryBytes() const;      // in use; 0 when it cannot be known
  std::uint64_t PeakMemoryBytes() const;  // in use at most, ended processes included; 0 as above
  void Remove();

 private:
  void AddController(const ControllerPlace& place, const std::string& name,
                     const CgroupLimits& limits);

  std::vector<std::string> directories_;
  std::vector<Refused> refused_;
  std::string memory_directory_;
  int memory_version_ = 0;
};

}  // namespace caisson::os
