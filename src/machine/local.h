// SPDX-License-Identifier: Apache-2.0
// What a driver does inside the helper, which is root: makes machines of one kind and changes them.
// Who may ask, which states a call fits, and that one is done at a time per machine is looked after
// by Machines (machine/machines.h), for every driver alike. What comes from inside a machine is
// never read here.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "egress/policy.h"
#include "images/store.h"
#include "machine/driver.h"
#include "machine/id_ranges.h"
#include "machine/networks.h"
#include "os/fd.h"

namespace caisson::machine {

// What the drivers of one helper have together.
struct SharedParts {
  std::shared_ptr<Networks> networks;
  std::shared_ptr<IdRanges> ids;
};

// One machine. Not synchronised; machines of one driver are used by several threads at once. It
// goes on when the object goes.
class LocalMachine {
 public:
  virtual ~LocalMachine() = default;
  LocalMachine() = default;
  LocalMachine(const LocalMachine&) = delete;
  LocalMachine& operator=(const LocalMachine&) = delete;

  virtual uid_t owner() const = 0;
  virtual std::uint32_t network() const = 0;  // its index in Networks; 0: none
  virtual Machine View() = 0;                 // with the state that it is in now

  // Takes everything of it away. Can be called again after a failure.
  virtual Result<void> Remove() = 0;
  // Of a machine that runs, or to disk of one that is paused in memory.
  virtual Result<void> Pause(Level level) = 0;
  // Of one that does not run. Does not wait for the agent.
  virtual Result<void> Resume() = 0;
  // Of a paused one, which stays so. The child's image is this one's, its disk not smaller.
  virtual Result<std::unique_ptr<LocalMachine>> Fork(uid_t owner, const MachineSpec& child,
                                                     Extent most) = 0;
  // Puts what a snapshot holds, at most `most`, into `directory`, which is empty, and names no file
  // snapshot.json. The machine stands still meanwhile, and is in the same state afterwards.
  virtual Result<void> Keep(const std::string& directory, Extent most) = 0;
  // To more than it has.
  virtual Result<void> Resize(std::uint64_t disk_bytes) = 0;
  virtual Result<void> SetNetwork(const egress::Policy& policy, SentCap cap) = 0;
  // For drivers that declare it.
  virtual Result<void> SetSharedNetworks(const std::set<std::string>& networks);
  virtual Result<Stats> ReadStats() = 0;
  // Of one that runs. Never waits for what is inside.
  virtual Result<os::UniqueFd> Connect() = 0;
};

// Thread-safe, but for Adopt.
class LocalDriver {
 public:
  virtual ~LocalDriver() = default;
  LocalDriver() = default;
  LocalDriver(const LocalDriver&) = delete;
  LocalDriver& operator=(const LocalDriver&) = delete;

  virtual Capabilities capabilities() const = 0;
  virtual const images::Store& store() const = 0;
  virtual std::string SnapshotsDirectory() const = 0;

  // What is there of earlier helpers. What was being made or removed is removed. Called once,
  // before anything else.
  virtual Result<std::vector<std::unique_ptr<LocalMachine>>> Adopt() = 0;
  // After every driver of this helper has adopted: what nobody has any more may be removed.
  virtual Result<void> Clean() { return {}; }

  // The spec is checked. Both return without waiting for the agent; on failure nothing is left.
  virtual Result<std::unique_ptr<LocalMachine>> Make(uid_t owner, const MachineSpec& spec) = 0;
  // From what Keep has put into `directory`. `spec` has the image and at least the size of `kept`.
  virtual Result<std::unique_ptr<LocalMachine>> Restore(const std::string& directory,
                                                        const Snapshot& kept, uid_t owner,
                                                        const MachineSpec& spec) = 0;
};

}  // namespace caisson::machine
