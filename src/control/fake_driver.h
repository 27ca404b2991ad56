// SPDX-License-Identifier: Apache-2.0
// A driver without machines, for the tests of this folder and of the API: keeps what it was told,
// and fails or waits where a test says so.
#pragma once

#include <fcntl.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "errors/machine.h"
#include "machine/driver.h"

namespace caisson::control {

// May be set while threads of what is tested call it.
class Hook {
 public:
  using Work = std::function<Result<void>(const std::string& operation, const std::string& id)>;

  Hook& operator=(Work work) {
    auto set = std::make_shared<const Work>(std::move(work));
    const std::lock_guard lock(mutex_);
    work_.swap(set);
    return *this;
  }
  Result<void> operator()(const std::string& operation, const std::string& id) const {
    std::shared_ptr<const Work> work;
    {
      const std::lock_guard lock(mutex_);
      work = work_;
    }
    return work && *work ? (*work)(operation, id) : Result<void>();
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Work> work_;
};

class FakeDriver : public machine::Driver {
 public:
  machine::Extent forked = machine::Extent::kNone;  // what the last fork asked for
  struct Entry {
    machine::Machine machine;
    machine::MachineSpec spec;
    machine::Stats stats;
  };

  machine::Capabilities capabilities() const override {
    return {.driver = name,
            .isolation_class = "namespaces",
            .pause = machine::Level::kMemory,
            .disk_pause_keeps_processes = saves_memory,
            .fork = copies_memory ? machine::Extent::kFull : machine::Extent::kFilesystem,
            .resize_disk = true,
            .network = true,
            .shared_networks = true};
  }
  Result<machine::Machine> Create(const machine::MachineSpec& spec) override {
    CAISSON_TRY(Before("create", spec.id));
    const std::lock_guard lock(mutex_);
    Entry& entry = machines[spec.id];
    entry.spec = spec;
    entry.machine = {.id = spec.id,
                     .state = machine::State::kRunning,
                     .ip = "10.0.0." + std::to_string(machines.size()),
                     .image = spec.image,
                     .disk_bytes = spec.disk_bytes};
    return entry.machine;
  }
  Result<void> Destroy(const std::string& id) override {
    CAISSON_TRY(Before("destroy", id));
    const std::lock_guard lock(mutex_);
    machines.erase(id);
    return {};
  }
  Result<void> Pause(const std::string& id, machine::Level) override {
    CAISSON_TRY(Before("pause", id));
    return Set(id, machine::State::kPausedInMemory);
  }
  Result<void> Resume(const std::string& id) override {
    CAISSON_TRY(Before("resume", id));
    return Set(id, machine::State::kRunning);
  }
  Result<machine::Machine> Fork(const std::string& parent, const machine::MachineSpec& child,
                                machine::Extent most) override {
    CAISSON_TRY(Before("fork", parent));
    forked = most;
    return Create(child);
  }
  Result<machine::Snapshot> TakeSnapshot(const std::string&, const std::string&,
                                         machine::Extent) override {
    return Unsupported();
  }
  Result<machine::Machine> Restore(const std::string&, const machine::MachineSpec&) override {
    return Unsupported();
  }
  Result<void> RemoveSnapshot(const std::string&) override { return Unsupported(); }
  Result<std::vector<machine::Snapshot>> ListSnapshots() override { return Unsupported(); }
  Result<void> Resize(const std::string& id, std::uint64_t disk_bytes) override {
    CAISSON_TRY(Before("resize", id));
    const std::lock_guard lock(mutex_);
    machines.at(id).machine.disk_bytes = disk_bytes;
    return {};
  }
  Result<void> SetNetwork(const std::string& id, const egress::Policy& policy,
                          machine::SentCap cap) override {
    CAISSON_TRY(Before("network", id));
    return Change(id, [&](Entry& entry) {
      entry.spec.network = policy;
      entry.spec.sent_cap = cap;
    });
  }
  Result<void> SetSharedNetworks(const std::string& id,
                                 const std::set<std::string>& networks) override {
    CAISSON_TRY(Before("networks", id));
    return Change(id, [&](Entry& entry) { entry.spec.shared_networks = networks; });
  }
  Result<machine::Stats> ReadStats(const std::string& id) override {
    const std::lock_guard lock(mutex_);
    const auto found = machines.find(id);
    if (found == machines.end()) return Fail(errors::kMachineUnknown, "no machine " + id);
    return found->second.stats;
  }
  Result<std::vector<machine::Machine>> List() override {
    CAISSON_TRY(Before("list", ""));
    const std::lock_guard lock(mutex_);
    std::vector<machine::Machine> out;
    for (const auto& [id, entry] : machines) out.push_back(entry.machine);
    return out;
  }
  Result<os::UniqueFd> Connect(const std::string& id) override {
    CAISSON_TRY(Before("connect", id));
    return os::UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC));
  }

  bool Has(const std::string& id) {
    const std::lock_guard lock(mutex_);
    return machines.contains(id);
  }
  machine::State StateOf(const std::string& id) {
    const std::lock_guard lock(mutex_);
    return machines.at(id).machine.state;
  }

  std::string name = "fake";
  bool saves_memory = false;
  bool copies_memory = false;
  // Called at the start of each operation; what it fails with is the outcome.
  Hook before;
  std::map<std::string, Entry> machines;

 private:
  Result<void> Before(const std::string& operation, const std::string& id) {
    return before(operation, id);
  }
  Result<void> Change(const std::string& id, const std::function<void(Entry&)>& change) {
    const std::lock_guard lock(mutex_);
    const auto found = machines.find(id);
    if (found == machines.end()) return Fail(errors::kMachineUnknown, "no machine " + id);
    change(found->second);
    return {};
  }
  Result<void> Set(const std::string& id, machine::State state) {
    return Change(id, [&](Entry& entry) { entry.machine.state = state; });
  }
  static std::unexpected<Status> Unsupported() {
    return Fail(errors::kMachineUnsupported, "the fake driver has no snapshots");
  }

  std::mutex mutex_;
};

}  // namespace caisson::control
