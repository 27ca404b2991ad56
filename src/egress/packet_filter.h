// SPDX-License-Identifier: Apache-2.0
// The packet filter of one network namespace: transactions by `nft`, counters by netlink. An `nft`
// child is kept, since starting one costs more than most transactions. What nft says is never
// believed: a transaction counts as done when the kernel's own generation number says so, and as
// not done when that number stands, so that a program that fails, lies, hangs or dies leaves either
// the old rules or the new ones and we know which. For a namespace in which nobody else changes
// rules. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "os/fd.h"
#include "os/netlink.h"
#include "os/process.h"

namespace caisson::egress {

class PacketFilter {
 public:
  // `namespace_fd` must live as long as this does. `nft`: a path, or a name that PATH is searched
  // for. Starts nothing yet.
  static Result<PacketFilter> Open(int namespace_fd, const std::string& nft,
                                   std::chrono::milliseconds patience = std::chrono::seconds(5));

  // One transaction: commands of nft(8), separated by ';' on one line. All of it or nothing. Fails
  // with egress.filter_failed: nothing was changed then; its details hold what nft said. With
  // egress.filter_unknown the kernel could not be asked: either may hold.
  Result<void> Commit(const std::string& commands);

  // A counter of the table `inet`/`table`; empty when there is none of that name.
  struct Count {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
  };
  Result<std::optional<Count>> ReadCounter(const std::string& table, const std::string& name);
  Result<bool> HasTable(const std::string& table);

  // Tracked connections that `address` opened are known no more.
  Result<void> ForgetFlows(std::uint32_t address);

  int child_pid() const { return child_.running() ? child_.pid() : 0; }  // 0: none; for tests

 private:
  PacketFilter(int namespace_fd, std::string nft, std::chrono::milliseconds patience,
               os::NetlinkSocket socket)
      : namespace_fd_(namespace_fd),
        nft_(std::move(nft)),
        patience_(patience),
        socket_(std::move(socket)) {}

  Result<void> StartChild();
  void StopChild();
  // What nft said to the commands; fails when it did not answer.
  Result<std::string> Ask(const std::string& commands);
  Result<std::uint32_t> Generation();

  int namespace_fd_;
  std::string nft_;
  std::chrono::milliseconds patience_;
  os::NetlinkSocket socket_;
  os::ChildProcess child_;
  os::UniqueFd to_child_;
  os::UniqueFd from_child_;
  std::uint64_t questions_ = 0;
};

}  // namespace caisson::egress
