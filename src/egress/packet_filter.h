// SPDX-License-Identifier: Apache-2.0
// The packet filter of one network namespace, by netlink. Whether a transaction was committed is
// read from the kernel's own generation number and from nothing else, so that after any failure we
// know whether the old rules stand or the new ones do. For a namespace in which nobody else changes
// rules. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "egress/filter_batch.h"
#include "os/netlink.h"

namespace caisson::egress {

class PacketFilter {
 public:
  // `table`, of family inet, is what is asked about; transactions are of the gateway's (kTable).
  static Result<PacketFilter> Open(int namespace_fd, const std::string& table);

  // All of it or nothing. Fails with egress.filter_failed: nothing was changed. With
  // egress.filter_unknown the kernel could not be asked: either may hold.
  Result<void> Commit(const FilterBatch& batch);

  // Empty when there is none of that name.
  struct Count {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
  };
  Result<std::optional<Count>> ReadCounter(const std::string& name);
  // The elements of a set over two addresses. Empty when there is no such set.
  Result<std::vector<FilterBatch::Pair>> ReadPairs(const std::string& set);
  Result<bool> HasTable();
  // Tracked connections that `address` opened are known no more.
  Result<void> ForgetFlows(std::uint32_t address);
  // The same as older kernels know it: all of them are looked at. As long as the table is.
  Result<void> ForgetFlowsOneByOne(std::uint32_t address);
  // The tuples of such connections, as the kernel has them.
  Result<std::vector<std::string>> FlowsOf(std::uint32_t address);

 private:
  PacketFilter(std::string table, os::NetlinkSocket socket)
      : table_(std::move(table)), socket_(std::move(socket)) {}

  Result<std::uint32_t> Generation();

  std::string table_;
  os::NetlinkSocket socket_;
};

}  // namespace caisson::egress
