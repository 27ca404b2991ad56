// SPDX-License-Identifier: Apache-2.0
// The machines of one driver as the helper has them: machine::Driver's operations for callers that
// are known by their uid. A caller sees its own machines alone. Thread-safe; one operation at a
// time per machine. Who wants something of one that is busy for long waits, as kMaxWaiting others
// may; more fail with machine.unavailable, so that they do not take up what serves other machines.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "machine/driver.h"
#include "machine/local.h"
#include "machine/snapshots.h"
#include "os/fd.h"

namespace caisson::machine {

class Machines {
 public:
  static constexpr std::size_t kMaxWaiting = 32;

  // Adopts what is there.
  static Result<std::unique_ptr<Machines>> Open(std::unique_ptr<LocalDriver> driver,
                                                std::shared_ptr<Networks> networks);

  std::set<std::uint32_t> NetworkIndices() const;  // waits for each machine
  Result<void> Clean() { return driver_->Clean(); }

  Capabilities capabilities() const { return driver_->capabilities(); }
  // These as in Driver, but that Create, Fork, Restore and Resume do not wait for the agent.
  Result<Machine> Create(uid_t caller, MachineSpec spec);
  Result<void> Destroy(uid_t caller, const std::string& id);
  Result<void> Pause(uid_t caller, const std::string& id, Level level);
  Result<void> Resume(uid_t caller, const std::string& id);
  Result<Machine> Fork(uid_t caller, const std::string& parent, MachineSpec child,
                       Extent most = Extent::kFull);
  Result<Snapshot> TakeSnapshot(uid_t caller, const std::string& id, const std::string& snapshot,
                                Extent most = Extent::kFull);
  Result<Machine> Restore(uid_t caller, const std::string& snapshot, MachineSpec spec);
  Result<void> RemoveSnapshot(uid_t caller, const std::string& snapshot);
  Result<std::vector<Snapshot>> ListSnapshots(uid_t caller);
  Result<void> Resize(uid_t caller, const std::string& id, std::uint64_t disk_bytes);
  Result<void> SetNetwork(uid_t caller, const std::string& id, const egress::Policy& policy,
                          SentCap cap);
  Result<void> SetSharedNetworks(uid_t caller, const std::string& id,
                                 const std::set<std::string>& networks);
  Result<egress::NetworkLog> ReadNetworkLog(uid_t caller, const std::string& id,
                                            std::uint64_t after);
  Result<Stats> ReadStats(uid_t caller, const std::string& id);
  Result<std::vector<Machine>> List(uid_t caller);
  Result<os::UniqueFd> Connect(uid_t caller, const std::string& id);

 private:
  struct Entry;
  class Locked;
  // What waits for nothing inside and copies nothing, and all else.
  enum class Pace : std::uint8_t { kQuick, kSlow };

  Machines() = default;
  Result<void> CheckNetwork(const egress::Policy& policy) const;
  Result<void> CheckShared(const std::set<std::string>& networks) const;
  Result<void> Require(bool capability, const char* what) const;
  Result<Locked> Find(uid_t caller, const std::string& id, Pace pace);
  // As it is now, for List.
  void Note(Entry& entry);
  // Makes a machine in an entry of its own.
  template <typename Make>
  Result<Machine> Enter(uid_t caller, MachineSpec spec, Make make);

  std::unique_ptr<LocalDriver> driver_;
  std::shared_ptr<Networks> networks_;
  std::unique_ptr<Snapshots> snapshots_;
  mutable std::mutex mutex_;  // of the map, and of the entries' views; taken last
  std::map<std::string, std::shared_ptr<Entry>> machines_;
};

// Of one helper, by the names of their drivers.
using MachinesByDriver = std::map<std::string, std::unique_ptr<Machines>>;

// Removes the networks that no machine of these has, as after a helper was killed. Once all drivers
// of a helper have been opened: they share the networks.
Result<void> RemoveStrays(Networks& networks, const MachinesByDriver& machines);

}  // namespace caisson::machine
