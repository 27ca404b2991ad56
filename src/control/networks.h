// SPDX-License-Identifier: Apache-2.0
// Networks between the sandboxes of a tenant: those that have one in common reach one another,
// whatever their egress rules say. Only over drivers that can do it
// (Capabilities::shared_networks); which sandboxes are in one is Sandboxes::Join and Leave.
// Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "control/sandboxes.h"

namespace caisson::control {

struct NetworkView {
  store::Network network;
  std::vector<Sandbox> members;  // that are not terminal
};

class Networks {
 public:
  explicit Networks(Sandboxes& sandboxes) : sandboxes_(sandboxes), store_(sandboxes.store()) {}

  // True when some driver of this service can join machines.
  bool AreThere() const;

  // Fails with control.bad_network, control.quota.
  Result<NetworkView> Create(const Caller& caller, const std::string& name);
  Result<std::vector<NetworkView>> List(const Caller& caller);
  // By id or name; control.not_found.
  Result<NetworkView> Get(const Caller& caller, const std::string& id_or_name);
  // Fails with control.in_use while it has members.
  Result<void> Delete(const Caller& caller, const std::string& id_or_name);

 private:
  Sandboxes& sandboxes_;
  store::Store& store_;
};

}  // namespace caisson::control
