// SPDX-License-Identifier: Apache-2.0
// The machines of this host, as the helper has them: machine::Driver's operations for callers that
// are known by their uid. A caller sees its own machines alone. Says nothing of agents but whether
// they are there: what comes from inside a machine is never read here. Thread-safe; one operation
// at a time per machine.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "machine/driver.h"
#include "machine/jail/pool.h"
#include "machine/jail/slot.h"
#include "machine/jail/snapshots.h"
#include "os/fd.h"

namespace caisson::machine::jail {

struct MachinesOptions {
  WorkshopOptions workshop;
  std::size_t prepared = 8;  // machines that wait, of each kind
  std::size_t threads = 8;   // that make them
};

// Writes to disk what paused machines have in memory of it, one after the other.
class Flusher;

class Machines {
 public:
  // Adopts what is there.
  static Result<std::unique_ptr<Machines>> Open(const MachinesOptions& options,
                                                std::unique_ptr<Networks> networks);

  ~Machines();

  Capabilities capabilities() const;
  // These as in Driver, but that Create, Fork, Restore and Resume do not wait for the agent.
  Result<Machine> Create(uid_t caller, MachineSpec spec);
  Result<void> Destroy(uid_t caller, const std::string& id);
  Result<void> Pause(uid_t caller, const std::string& id, Level level);
  Result<void> Resume(uid_t caller, const std::string& id);
  Result<Machine> Fork(uid_t caller, const std::string& parent, MachineSpec child);
  Result<Snapshot> TakeSnapshot(uid_t caller, const std::string& id, const std::string& snapshot);
  Result<Machine> Restore(uid_t caller, const std::string& snapshot, MachineSpec spec);
  Result<void> RemoveSnapshot(uid_t caller, const std::string& snapshot);
  Result<std::vector<Snapshot>> ListSnapshots(uid_t caller);
  Result<void> Resize(uid_t caller, const std::string& id, std::uint64_t disk_bytes);
  Result<void> SetNetwork(uid_t caller, const std::string& id, const egress::Policy& policy);
  Result<Stats> ReadStats(uid_t caller, const std::string& id);
  Result<std::vector<Machine>> List(uid_t caller);
  Result<os::UniqueFd> Connect(uid_t caller, const std::string& id);

 private:
  // The slot is null while the machine is being made, and when it is gone.
  struct Entry {
    std::mutex mutex;
    uid_t owner = 0;  // does not change
    std::unique_ptr<Slot> slot;
  };
  // An entry with its lock. The slot is there.
  struct Locked {
    std::shared_ptr<Entry> entry;
    std::unique_lock<std::mutex> lock;
    Slot& slot() const { return *entry->slot; }
    Record& record() const { return entry->slot->record; }
  };

  Machines();
  Result<void> Adopt();
  Result<void> CheckNetwork(const egress::Policy& policy) const;
  Result<Locked> Find(uid_t caller, const std::string& id);
  // Makes a machine in an entry of its own; `make` gives the slot.
  template <typename MakeSlot>
  Result<Machine> Enter(uid_t caller, MachineSpec spec, MakeSlot make);
  Result<void> Launch(Slot& slot, uid_t caller, const MachineSpec& spec);
  Result<void> Freeze(Slot& slot);
  Result<void> StopOnDisk(Slot& slot);

  std::unique_ptr<Workshop> workshop_;
  std::shared_mutex snapshots_mutex_;
  std::optional<Snapshots> snapshots_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> machines_;
  // Last: these use the workshop.
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Flusher> flusher_;
};

// What of a record its owner sees.
Machine ViewOf(Slot& slot);

}  // namespace caisson::machine::jail
