// SPDX-License-Identifier: Apache-2.0
#include "control/drivers.h"

#include "errors/machine.h"

namespace caisson::control {
namespace {

class MissingDriver final : public machine::Driver {
 public:
  machine::Capabilities capabilities() const override { return {}; }
  Result<machine::Machine> Create(const machine::MachineSpec&) override { return Missing(); }
  Result<void> Destroy(const std::string&) override { return Missing(); }
  Result<void> Pause(const std::string&, machine::Level) override { return Missing(); }
  Result<void> Resume(const std::string&) override { return Missing(); }
  Result<machine::Machine> Fork(const std::string&, const machine::MachineSpec&,
                                machine::Extent) override {
    return Missing();
  }
  Result<machine::Snapshot> TakeSnapshot(const std::string&, const std::string&,
                                         machine::Extent) override {
    return Missing();
  }
  Result<machine::Machine> Restore(const std::string&, const machine::MachineSpec&) override {
    return Missing();
  }
  Result<void> RemoveSnapshot(const std::string&) override { return Missing(); }
  Result<std::vector<machine::Snapshot>> ListSnapshots() override { return Missing(); }
  Result<void> Resize(const std::string&, std::uint64_t) override { return Missing(); }
  Result<void> SetNetwork(const std::string&, const egress::Policy&, machine::SentCap) override {
    return Missing();
  }
  Result<void> SetSharedNetworks(const std::string&, const std::set<std::string>&) override {
    return Missing();
  }
  Result<egress::NetworkLog> ReadNetworkLog(const std::string&, std::uint64_t) override {
    return Missing();
  }
  Result<machine::Stats> ReadStats(const std::string&) override { return Missing(); }
  Result<std::vector<machine::Machine>> List() override { return Missing(); }
  Result<os::UniqueFd> Connect(const std::string&) override { return Missing(); }

 private:
  static std::unexpected<Status> Missing() {
    return Fail(errors::kMachineUnavailable,
                "the driver of this machine is not among those that the service was started with; "
                "start it with --driver for that one too");
  }
};

}  // namespace

Drivers::Drivers(machine::Driver& only) : Drivers(std::vector<machine::Driver*>{&only}) {}

Drivers::Drivers(const std::vector<machine::Driver*>& all)
    : missing_(std::make_unique<MissingDriver>()) {
  for (machine::Driver* driver : all) {
    const std::string name = driver->capabilities().driver;
    if (drivers_.emplace(name, driver).second) names_.push_back(name);
  }
}
Drivers::Drivers(Drivers&&) noexcept = default;
Drivers::~Drivers() = default;

machine::Driver& Drivers::Of(const std::string& name) const {
  const auto found = drivers_.find(name);
  return found == drivers_.end() ? *missing_ : *found->second;
}

}  // namespace caisson::control
