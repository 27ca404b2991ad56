// SPDX-License-Identifier: Apache-2.0
// What machines get of networks: those of a gateway (egress/network.h), or none but a loopback
// device, where the operator wants none. Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "egress/network.h"
#include "egress/policy.h"
#include "machine/driver.h"
#include "os/fd.h"

namespace caisson::machine {

struct NetworkPlace {
  std::uint32_t index = 0;  // for the record
  std::string address;      // empty: none
  std::string path;         // of the namespace
};

// Of a virtual machine (egress::TapNetwork); without networks there is no tap.
struct TapPlace {
  NetworkPlace place;
  os::UniqueFd tap;
  std::string mac, gateway, gateway_mac;
};

struct NetworkTraffic {
  std::uint64_t received_bytes = 0;
  std::uint64_t sent_bytes = 0;
};

class Networks {
 public:
  virtual ~Networks() = default;
  virtual bool enforces() const = 0;
  virtual bool enforces_names() const = 0;
  // For the operator, where they are not: empty when nobody wanted them to be.
  virtual std::string WhyNoNames() const { return ""; }
  virtual Result<NetworkPlace> Make() = 0;  // nothing is open
  virtual Result<TapPlace> MakeTap() = 0;
  // The same of a monitor that opens egress::kNamedTap in the namespace `place.path`, as the user
  // `owner`; AwaitNamedTap once it has.
  virtual Result<TapPlace> MakeNamedTap(uid_t owner) = 0;
  virtual Result<void> AwaitNamedTap(std::uint32_t index) = 0;
  virtual Result<void> Apply(std::uint32_t index, const egress::Policy& policy, SentCap cap) = 0;
  virtual Result<void> Adopt(std::uint32_t index, const egress::Policy& policy, SentCap cap) = 0;
  virtual Result<void> Remove(std::uint32_t index) = 0;
  // The networks that the machine shares with others of the same owner; see
  // MachineSpec::shared_networks. After Make it is in none, after Adopt it has to be told again.
  virtual Result<void> Share(std::uint32_t index, uid_t owner,
                             const std::set<std::string>& networks) = 0;
  virtual Result<egress::NetworkLog> ReadLog(std::uint32_t index, std::uint64_t after) = 0;
  virtual Result<NetworkTraffic> ReadTraffic(std::uint32_t index) = 0;
  virtual Result<std::vector<std::uint32_t>> List() = 0;
  virtual std::vector<std::string> name_servers() const = 0;
};

// Nothing but a loopback device each.
std::unique_ptr<Networks> NoNetworks();

// Those of a gateway, which is looked after from a thread. Fails as Gateway::Open.
Result<std::unique_ptr<Networks>> GatewayNetworks(const egress::GatewayOptions& options);

}  // namespace caisson::machine
