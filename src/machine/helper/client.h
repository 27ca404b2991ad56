// SPDX-License-Identifier: Apache-2.0
// A driver of the helper (helper/server.h) as a Driver for a process without privileges.
// Thread-safe; calls for different machines run at once. The helper may be restarted meanwhile:
// calls that can be repeated are.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "machine/driver.h"
#include "machine/helper/protocol.h"
#include "os/fd.h"

namespace caisson::machine::helper {

class RemoteDriver final : public Driver {
 public:
  struct Options {
    std::string socket;           // of `caisson machined`
    std::string driver = "jail";  // one of those that it hosts
    // How long an agent may take to answer for the first time.
    std::chrono::milliseconds agent_patience{15'000};
    // How long a helper that is restarted may take to be back.
    std::chrono::milliseconds helper_patience{5'000};
  };
  // Asks the helper for its capabilities. Fails with machine.unavailable when there is no helper,
  // or it does not host that driver.
  static Result<std::unique_ptr<RemoteDriver>> Open(const Options& options);

  Capabilities capabilities() const override { return capabilities_; }
  Result<Machine> Create(const MachineSpec& spec) override;
  Result<void> Destroy(const std::string& id) override;
  Result<void> Pause(const std::string& id, Level level) override;
  Result<void> Resume(const std::string& id) override;
  Result<Machine> Fork(const std::string& parent, const MachineSpec& child,
                       Extent most = Extent::kFull) override;
  Result<Snapshot> TakeSnapshot(const std::string& id, const std::string& snapshot,
                                Extent most = Extent::kFull) override;
  Result<Machine> Restore(const std::string& snapshot, const MachineSpec& spec) override;
  Result<void> RemoveSnapshot(const std::string& snapshot) override;
  Result<std::vector<Snapshot>> ListSnapshots() override;
  Result<void> Resize(const std::string& id, std::uint64_t disk_bytes) override;
  using Driver::SetNetwork;
  Result<void> SetNetwork(const std::string& id, const egress::Policy& policy,
                          SentCap cap) override;
  Result<void> SetSharedNetworks(const std::string& id,
                                 const std::set<std::string>& networks) override;
  Result<egress::NetworkLog> ReadNetworkLog(const std::string& id, std::uint64_t after) override;
  Result<Stats> ReadStats(const std::string& id) override;
  Result<std::vector<Machine>> List() override;
  Result<os::UniqueFd> Connect(const std::string& id) override;

 private:
  explicit RemoteDriver(Options options) : options_(std::move(options)) {}
  struct Answer {
    json::Value value;
    os::UniqueFd fd;
    std::optional<Status> failure;  // that the helper tells
  };
  Result<Answer> Ask(Request request);
  Result<Answer> AskOnce(const std::string& text, bool& sent);
  Result<os::UniqueFd> TakeConnection();
  // For what makes a machine: afterwards it answers, or is gone.
  Result<Machine> Make(const Request& request);
  Result<void> AwaitAgent(const std::string& id, os::UniqueFd connection);
  void Undo(const std::string& id);

  Options options_;
  Capabilities capabilities_;
  std::mutex mutex_;
  std::vector<os::UniqueFd> idle_;
};

}  // namespace caisson::machine::helper
