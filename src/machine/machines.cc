// SPDX-License-Identifier: Apache-2.0
#include "machine/machines.h"

#include <fmt/format.h>

#include <atomic>
#include <optional>
#include <utility>

#include "errors/egress.h"
#include "errors/machine.h"
#include "machine/spec.h"

namespace caisson::machine {
namespace {

std::unexpected<Status> Unknown(const std::string& id) {
  return Fail(errors::kMachineUnknown, "there is no machine " + id);
}

std::unexpected<Status> WrongState(const Machine& machine, const std::string& needs) {
  return Fail(errors::kMachineWrongState,
              fmt::format("machine {} is {}; {}", machine.id, NameOf(machine.state), needs));
}

Result<void> CheckDisk(const MachineSpec& spec, std::uint64_t least, const char* whose) {
  if (spec.disk_bytes >= least) return {};
  return Fail(errors::kMachineInvalid, fmt::format("disk_bytes is at least {}, {}", whose, least));
}

}  // namespace

struct Machines::Entry {
  explicit Entry(uid_t of) : owner(of) {}

  const uid_t owner;
  std::mutex mutex;                       // one operation at a time
  std::unique_ptr<LocalMachine> machine;  // null while it is made, and when it is gone
  std::atomic<std::size_t> users = 0;     // that have the mutex or wait for it
  std::atomic<bool> is_slow = false;      // whoever has the mutex keeps it for long
  std::optional<Machine> view;            // by Machines::mutex_: as the last operation has left it
};

// An entry with its lock, of which the machine is there.
class Machines::Locked {
 public:
  Locked(Machines& machines, std::shared_ptr<Entry> entry, Pace pace)
      : machines_(&machines), entry_(std::move(entry)), lock_(entry_->mutex) {
    entry_->is_slow = pace == Pace::kSlow;
  }
  Locked(Locked&&) noexcept = default;
  Locked& operator=(Locked&&) = delete;
  ~Locked() {
    if (entry_ == nullptr) return;  // moved from
    machines_->Note(*entry_);
    entry_->is_slow = false;
    --entry_->users;
  }
  LocalMachine& machine() const { return *entry_->machine; }
  bool IsThere() const { return entry_->machine != nullptr; }
  void Forget() const { entry_->machine.reset(); }

 private:
  Machines* machines_;
  std::shared_ptr<Entry> entry_;
  std::unique_lock<std::mutex> lock_;  // ends first
};

Result<std::unique_ptr<Machines>> Machines::Open(std::unique_ptr<LocalDriver> driver,
                                                 std::shared_ptr<Networks> networks) {
  std::unique_ptr<Machines> machines(new Machines());
  machines->driver_ = std::move(driver);
  machines->networks_ = std::move(networks);
  CAISSON_ASSIGN(std::vector<std::unique_ptr<LocalMachine>> adopted, machines->driver_->Adopt());
  for (std::unique_ptr<LocalMachine>& machine : adopted) {
    auto entry = std::make_shared<Entry>(machine->owner());
    entry->view = machine->View();
    entry->machine = std::move(machine);
    machines->machines_.emplace(entry->view->id, entry);
  }
  CAISSON_ASSIGN(machines->snapshots_, Snapshots::Open(machines->driver_->SnapshotsDirectory(),
                                                       machines->driver_->store()));
  return machines;
}

std::set<std::uint32_t> Machines::NetworkIndices() const {
  std::vector<std::shared_ptr<Entry>> entries;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : machines_) entries.push_back(entry);
  }
  std::set<std::uint32_t> indices;
  for (const std::shared_ptr<Entry>& entry : entries) {
    const std::lock_guard lock(entry->mutex);
    if (entry->machine != nullptr) indices.insert(entry->machine->network());
  }
  return indices;
}

void Machines::Note(Entry& entry) {
  std::optional<Machine> view;
  if (entry.machine != nullptr) view = entry.machine->View();
  const std::lock_guard lock(mutex_);
  entry.view = std::move(view);
}

Result<Machines::Locked> Machines::Find(uid_t caller, const std::string& id, Pace pace) {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    const auto found = machines_.find(id);
    if (found == machines_.end() || found->second->owner != caller) return Unknown(id);
    entry = found->second;
  }
  if (++entry->users > kMaxWaiting + 1 && entry->is_slow) {
    --entry->users;
    return Fail(errors::kMachineUnavailable,
                fmt::format("machine {} is being changed, and {} others wait for that already; try "
                            "again later",
                            id, kMaxWaiting));
  }
  Locked locked(*this, std::move(entry), pace);
  if (!locked.IsThere()) return Unknown(id);
  return locked;
}

Result<void> Machines::CheckNetwork(const egress::Policy& policy) const {
  const Capabilities capabilities = driver_->capabilities();
  const bool opens = policy.opens_public() || policy.opens_names() ||
                     !policy.OpenOnAllPorts().empty() || !policy.OpenOnPorts().empty();
  if (opens && !capabilities.network) {
    return Fail(errors::kMachineUnsupported,
                "machines have no network here (caisson machined --without-network): ask for none");
  }
  if (policy.names().empty() || capabilities.host_name_rules) return {};
  return Fail(errors::kEgressHostNamesUnsupported,
              fmt::format("egress[{}] is a rule by host name, which the driver {} does not enforce "
                          "here; write addresses or networks",
                          policy.names()[0].index, capabilities.driver));
}

Result<void> Machines::CheckShared(const std::set<std::string>& networks) const {
  if (networks.empty()) return {};
  CAISSON_TRY(Require(driver_->capabilities().shared_networks, "networks that machines share"));
  return CheckSharedNetworks(networks);
}

Result<void> Machines::Require(bool capability, const char* what) const {
  if (capability) return {};
  return Fail(errors::kMachineUnsupported,
              fmt::format("the driver {} has no {}", driver_->capabilities().driver, what));
}

template <typename Make>
Result<Machine> Machines::Enter(uid_t caller, MachineSpec spec, Make make) {
  CAISSON_TRY(CheckSpec(spec));
  CAISSON_TRY(CheckNetwork(spec.network));
  CAISSON_TRY(CheckShared(spec.shared_networks));
  auto entry = std::make_shared<Entry>(caller);
  ++entry->users;
  const Locked made(*this, entry, Pace::kSlow);
  {
    const std::lock_guard lock(mutex_);
    if (!machines_.emplace(spec.id, entry).second) {
      return Fail(errors::kMachineExists, "there is a machine " + spec.id + " already");
    }
  }
  Result<std::unique_ptr<LocalMachine>> machine = make(spec);
  if (!machine) {
    const std::lock_guard lock(mutex_);
    machines_.erase(spec.id);
    return Fail(std::move(machine).error());
  }
  entry->machine = *std::move(machine);
  return entry->machine->View();
}

Result<Machine> Machines::Create(uid_t caller, MachineSpec spec) {
  return Enter(caller, std::move(spec),
               [&](const MachineSpec& checked) { return driver_->Make(caller, checked); });
}

Result<void> Machines::Destroy(uid_t caller, const std::string& id) {
  const auto found = Find(caller, id, Pace::kSlow);
  if (!found && found.error().code == errors::kMachineUnknown) return {};
  if (!found) return Fail(found.error());
  CAISSON_TRY(found->machine().Remove());
  found->Forget();
  const std::lock_guard lock(mutex_);
  machines_.erase(id);
  return {};
}

Result<void> Machines::Pause(uid_t caller, const std::string& id, Level level) {
  CAISSON_ASSIGN(const Locked found, Find(caller, id, Pace::kSlow));
  if (level == Level::kNone) {
    return Fail(errors::kMachineInvalid, "a pause is to memory or to disk");
  }
  CAISSON_TRY(Require(driver_->capabilities().pause >= level, "pause of this kind"));
  const Machine view = found.machine().View();
  switch (view.state) {
    case State::kStopped:
      return WrongState(view, "resume it first, or destroy it");
    case State::kPausedOnDisk:
      return {};
    case State::kPausedInMemory:
      if (level == Level::kMemory) return {};
      break;
    case State::kRunning:
      break;
  }
  return found.machine().Pause(level);
}

Result<void> Machines::Resume(uid_t caller, const std::string& id) {
  CAISSON_ASSIGN(const Locked found, Find(caller, id, Pace::kSlow));
  if (found.machine().View().state == State::kRunning) return {};
  return found.machine().Resume();
}

Result<Machine> Machines::Fork(uid_t caller, const std::string& parent, MachineSpec child,
                               Extent most) {
  CAISSON_ASSIGN(const Locked found, Find(caller, parent, Pace::kSlow));
  if (most == Extent::kNone)
    return Fail(errors::kMachineInvalid, "a fork is of the disk, or of all");
  CAISSON_TRY(Require(driver_->capabilities().fork != Extent::kNone, "forks"));
  const Machine view = found.machine().View();
  if (view.state != State::kPausedInMemory && view.state != State::kPausedOnDisk) {
    return WrongState(view, "pause it before it is forked");
  }
  child.image = view.image;
  CAISSON_TRY(CheckDisk(child, view.disk_bytes, "the parent's"));
  return Enter(caller, std::move(child), [&](const MachineSpec& checked) {
    return found.machine().Fork(caller, checked, most);
  });
}

Result<Snapshot> Machines::TakeSnapshot(uid_t caller, const std::string& id,
                                        const std::string& snapshot, Extent most) {
  CAISSON_ASSIGN(const Locked found, Find(caller, id, Pace::kSlow));
  if (most == Extent::kNone) {
    return Fail(errors::kMachineInvalid, "a snapshot is of the disk, or of all");
  }
  CAISSON_TRY(Require(driver_->capabilities().snapshot != Extent::kNone, "snapshots"));
  const Machine view = found.machine().View();
  return snapshots_->Take(
      caller, {.id = snapshot, .image = view.image, .disk_bytes = view.disk_bytes},
      [&](const std::string& directory) { return found.machine().Keep(directory, most); });
}

Result<Machine> Machines::Restore(uid_t caller, const std::string& snapshot, MachineSpec spec) {
  CAISSON_ASSIGN(const Snapshots::Held held, snapshots_->Hold(caller, snapshot));
  const Snapshot& kept = held.snapshot;
  spec.image = kept.image;
  CAISSON_TRY(CheckDisk(spec, kept.disk_bytes, "the snapshot's"));
  return Enter(caller, std::move(spec), [&](const MachineSpec& checked) {
    return driver_->Restore(held.directory, kept, caller, checked);
  });
}

Result<void> Machines::RemoveSnapshot(uid_t caller, const std::string& snapshot) {
  return snapshots_->Remove(caller, snapshot);
}

Result<std::vector<Snapshot>> Machines::ListSnapshots(uid_t caller) {
  return snapshots_->List(caller);
}

Result<void> Machines::Resize(uid_t caller, const std::string& id, std::uint64_t disk_bytes) {
  CAISSON_ASSIGN(const Locked found, Find(caller, id, Pace::kSlow));
  CAISSON_TRY(Require(driver_->capabilities().resize_disk, "disks that grow"));
  const std::uint64_t has = found.machine().View().disk_bytes;
  if (disk_bytes <= has || disk_bytes > kMaxDiskBytes) {
    return Fail(errors::kMachineInvalid,
                fmt::format("a disk can only grow, from {} to {} at most", has, kMaxDiskBytes));
  }
  return found.machine().Resize(disk_bytes);
}

Result<void> Machines::SetNetwork(uid_t caller, const std::string& id, const egress::Policy& policy,
                                  SentCap cap) {
  CAISSON_ASSIGN(const Locked found, Find(caller, id, Pace::kQuick));
  CAISSON_TRY(CheckNetwork(policy));
  return found.machine().SetNetwork(policy, cap);
}

Result<void> Machines::SetSharedNetworks(uid_t caller, const std::string& id,
                                         const std::set<std::string>& networks) {
  CAISSON_ASSIGN(const Locked found, Find(caller, id, Pace::kQuick));
  CAISSON_TRY(CheckShared(networks));
  return found.machine().SetSharedNetworks(networks);
}

Result<egress::NetworkLog> Machines::ReadNetworkLog(uid_t caller, const std::string& id,
                                                    std::uint64_t after) {
  CAISSON_ASSIGN(const Locked found, Find(caller, id, Pace::kQuick));
  CAISSON_TRY(Require(driver_->capabilities().network, "network, and no log of it"));
  const std::uint32_t network = found.machine().network();
  if (network == 0) return egress::NetworkLog{};
  return networks_->ReadLog(network, after);
}

Result<void> LocalMachine::SetSharedNetworks(const std::set<std::string>&) {
  return Fail(errors::kMachineUnsupported, "this driver's machines cannot share networks");
}

Result<Stats> Machines::ReadStats(uid_t caller, const std::string& id) {
  CAISSON_ASSIGN(const Locked found, Find(caller, id, Pace::kQuick));
  return found.machine().ReadStats();
}

Result<std::vector<Machine>> Machines::List(uid_t caller) {
  std::vector<std::shared_ptr<Entry>> entries;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : machines_) {
      if (entry->owner == caller) entries.push_back(entry);
    }
  }
  std::vector<Machine> list;
  for (const std::shared_ptr<Entry>& entry : entries) {
    // What is busy is told as it was. It may have ended since.
    const std::unique_lock now(entry->mutex, std::try_to_lock);
    if (now) Note(*entry);
    const std::lock_guard lock(mutex_);
    if (entry->view) list.push_back(*entry->view);
  }
  return list;
}

Result<os::UniqueFd> Machines::Connect(uid_t caller, const std::string& id) {
  CAISSON_ASSIGN(const Locked found, Find(caller, id, Pace::kQuick));
  const Machine view = found.machine().View();
  if (view.state != State::kRunning) return WrongState(view, "resume it first");
  return found.machine().Connect();
}

Result<void> RemoveStrays(Networks& networks, const MachinesByDriver& machines) {
  std::set<std::uint32_t> known;
  for (const auto& [name, those] : machines) known.merge(those->NetworkIndices());
  CAISSON_ASSIGN(const std::vector<std::uint32_t> there, networks.List());
  for (const std::uint32_t index : there) {
    if (!known.contains(index)) CAISSON_TRY(networks.Remove(index));
  }
  for (const auto& [name, those] : machines) CAISSON_TRY(those->Clean());
  return {};
}

}  // namespace caisson::machine
