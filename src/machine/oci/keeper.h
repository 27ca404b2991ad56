// SPDX-License-Identifier: Apache-2.0
// A small process beside each container: it starts the runtime's program, is the parent of what
// that leaves behind, and says how it ended. When we close its socket or end, however that happens,
// it ends the container and runs the command that clears away.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "os/fd.h"
#include "os/process.h"

namespace caisson::machine::oci {

struct KeeperPlan {
  std::vector<std::string> start;    // an absolute path first
  std::vector<std::string> clear;    // the same; run once everything has ended
  std::string pid_file;              // `start` leaves the container running and names it here;
                                     // empty: `start` runs as long as the container does
  std::vector<std::string> groups;   // files cgroup.procs that `start` enters
  std::array<int, 4> descriptors{};  // 0 to 3 of `start`; -1: none (3 only)
};

enum class KeeperEventKind : std::uint32_t { kStarted = 1, kEnded = 2 };
// kEnded without kStarted: `start` failed, and `status` is its own.
struct KeeperEvent {
  KeeperEventKind kind;
  std::int32_t status;  // as wait(2) gives it
  std::int32_t pid;     // kStarted; of what ended
  std::uint32_t unused;
  std::uint64_t cpu_ns;  // kEnded: of the container, those of its children that it awaited included
};

class Keeper {
 public:
  Keeper() = default;
  ~Keeper();  // waits until all is cleared away
  // Fails with os.syscall.
  static Result<Keeper> Start(const KeeperPlan& plan);
  Keeper(Keeper&&) noexcept = default;
  Keeper& operator=(Keeper&& other) noexcept;

  int fd() const { return control_.get(); }
  // Empty when the keeper is gone.
  std::optional<KeeperEvent> Receive();
  // Ends the container and has everything cleared away, and does not wait for it.
  void Dismiss() { control_.Reset(); }

 private:
  os::ChildProcess process_;
  os::UniqueFd control_;
};

}  // namespace caisson::machine::oci
