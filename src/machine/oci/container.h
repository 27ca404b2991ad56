// SPDX-License-Identifier: Apache-2.0
// One container from its start until nothing of it is left. Not thread-safe per object.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "machine/oci/keeper.h"
#include "machine/oci/policy.h"
#include "machine/oci/runtime.h"
#include "machine/oci/state.h"
#include "os/cgroup.h"
#include "os/fd.h"
#include "os/process.h"

namespace caisson::machine::oci {

struct ContainerStart {
  const Runtime* runtime = nullptr;
  ContainerPolicy policy;
  std::string image;  // of engines
  // 0 to 2 of the container, and 3 where PassesDescriptors(kind); -1: no 3.
  std::array<int, 4> descriptors{-1, -1, -1, -1};
};
// Whether a descriptor beside the standard ones reaches the container.
constexpr bool PassesDescriptors(RuntimeKind kind) { return kind == RuntimeKind::kRunc; }
// Whether its processor time can be read from here while it runs.
constexpr bool CountsCpu(RuntimeKind kind) { return kind == RuntimeKind::kRunc; }

class Container {
 public:
  // Returns as soon as the runtime has been started. `state` outlives it. Fails with oci.state,
  // os.syscall.
  static Result<Container> Start(State& state, const ContainerStart& start);
  Container(Container&&) noexcept = default;
  Container& operator=(Container&&) noexcept = default;
  // Waits until nothing is left, some tens of milliseconds; Dismiss lets that begin earlier.
  ~Container();

  struct End {
    os::ExitStatus status;  // of the container; where an engine hides a signal, 128 and it
    std::chrono::nanoseconds cpu{0};
    bool started = true;  // false: the runtime failed, and `status` is its own
  };

  // Readable when there is something for HandleEvent, which is false once the container has ended.
  int EventFd() const { return keeper_.fd(); }
  bool HandleEvent();
  const std::optional<End>& end() const { return end_; }

  // Ends it, and has it removed in the background.
  void Dismiss() { keeper_.Dismiss(); }
  // Empty when it cannot be known.
  std::optional<std::chrono::nanoseconds> CpuNow() const;
  std::uint64_t PeakMemory() const { return cgroup_.PeakMemoryBytes(); }
  // What its first process had reserved, where the host can look at it, counts, too.
  std::uint64_t PeakReservedMemory() const;
  // Whether something in it was killed for want of memory. Engines are asked, which takes a while.
  bool RanOutOfMemory() const;

 private:
  Container() = default;
  Result<void> WriteBundle(const ContainerStart& start, const std::string& cgroup);

  const Runtime* runtime_ = nullptr;
  std::string name_;
  std::string bundle_;
  std::chrono::system_clock::time_point begin_;
  os::Cgroup cgroup_;  // the runtime's own, or ours around it
  pid_t pid_ = 0;
  std::optional<End> end_;
  Keeper keeper_;  // last: everything else is there until it has cleared away
};

// Removes what dead processes have left: containers with their processes and cgroups, bundles.
// Returns the names of the containers. Failures are left to the next call.
std::vector<std::string> ReapOrphans(const State& state, const Runtime& runtime);

}  // namespace caisson::machine::oci
