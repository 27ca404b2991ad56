// SPDX-License-Identifier: Apache-2.0
#include "control/networks.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/names.h"
#include "control/plan.h"
#include "control/request_check.h"
#include "control/secret.h"
#include "errors/control.h"
#include "errors/egress.h"
#include "errors/machine.h"
#include "errors/store.h"

namespace caisson::control {
namespace {

constexpr std::size_t kMostName = 63;

Result<NetworkView> ViewOf(store::Rows& rows, store::Network network) {
  CAISSON_ASSIGN(auto members, rows.Members(network.id));
  return NetworkView{.network = std::move(network), .members = std::move(members)};
}

std::unexpected<Status> NoNetwork(const std::string& id_or_name) {
  return Fail(errors::kControlNotFound, "there is no network " + id_or_name.substr(0, 64));
}

}  // namespace

bool Networks::AreThere() const {
  const Drivers& drivers = sandboxes_.drivers();
  return std::ranges::any_of(drivers.names(), [&](const std::string& name) {
    return drivers.Of(name).capabilities().shared_networks;
  });
}

Result<NetworkView> Networks::Create(const Caller& caller, const std::string& name) {
  if (!IsName(name, kMostName)) {
    return FailAt("name", errors::kControlBadNetwork,
                  "a name has 1 to 63 characters: a-z, 0-9 and '-', which may not come first or "
                  "last");
  }
  const Milliseconds now = sandboxes_.options().now();
  const store::Network row{
      .id = "net-" + MakeUlid(now), .tenant = caller.tenant, .name = name, .created_at = now};
  CAISSON_TRY(store_.Write([&](store::Rows& rows) -> Result<void> {
    CAISSON_ASSIGN(const auto tenant, rows.FindTenant(caller.tenant));
    CAISSON_ASSIGN(const auto all, rows.Networks(caller.tenant));
    const std::int64_t most = tenant ? tenant->quota.networks : 0;
    if (most != store::kUnlimited && static_cast<std::int64_t>(all.size()) >= most) {
      return Fail(errors::kControlQuota, fmt::format("the tenant's quota is {} networks", most));
    }
    auto inserted = rows.InsertNetwork(row);
    if (inserted || inserted.error().code != errors::kStoreConflict) return inserted;
    return FailAt("name", errors::kControlBadNetwork,
                  fmt::format("there is a network {} already", name));
  }));
  return NetworkView{.network = row, .members = {}};
}

Result<std::vector<NetworkView>> Networks::List(const Caller& caller) {
  return store_.Read([&](store::Rows& rows) -> Result<std::vector<NetworkView>> {
    CAISSON_ASSIGN(auto networks, rows.Networks(caller.tenant));
    std::vector<NetworkView> views;
    for (store::Network& network : networks) {
      CAISSON_ASSIGN(NetworkView view, ViewOf(rows, std::move(network)));
      views.push_back(std::move(view));
    }
    return views;
  });
}

Result<NetworkView> Networks::Get(const Caller& caller, const std::string& id_or_name) {
  return store_.Read([&](store::Rows& rows) -> Result<NetworkView> {
    CAISSON_ASSIGN(auto network, rows.FindNetwork(caller.tenant, id_or_name));
    if (!network) return NoNetwork(id_or_name);
    return ViewOf(rows, *std::move(network));
  });
}

Result<void> Networks::Delete(const Caller& caller, const std::string& id_or_name) {
  return store_.Write([&](store::Rows& rows) -> Result<void> {
    CAISSON_ASSIGN(const auto network, rows.FindNetwork(caller.tenant, id_or_name));
    if (!network) return NoNetwork(id_or_name);
    CAISSON_ASSIGN(const auto members, rows.Members(network->id));
    if (members.empty()) return rows.DeleteNetwork(network->id);
    return Fail(errors::kControlInUse,
                fmt::format("{} sandboxes are in the network; take them out or delete them first",
                            members.size()));
  });
}

// ---- which sandboxes are in one

// Writes `change`, tells the driver, and takes it back when that cannot be done.
Result<Sandbox> Sandboxes::ChangeMembership(const Caller& caller, const std::string& id,
                                            const std::string& network, bool shall_be_in) {
  const KeyedLocks::Held held(locks_, id);
  CAISSON_ASSIGN(Sandbox sandbox, Get(caller, id));
  if (sandbox.state != SandboxState::kRunning && sandbox.state != SandboxState::kPaused) {
    return Fail(errors::kControlState,
                fmt::format("the sandbox is {}, which does not allow a change of its networks",
                            ToText(sandbox.state)));
  }
  if (!DriverOf(sandbox).capabilities().shared_networks) {
    return Fail(errors::kMachineUnsupported,
                fmt::format("the driver {} cannot join sandboxes in networks", sandbox.driver));
  }
  std::set<std::string> networks;
  std::string changed;  // the network's id; empty: there is nothing to do
  const auto write = [&](bool in) {
    return store_.Write([&](store::Rows& rows) -> Result<void> {
      CAISSON_ASSIGN(const auto row, rows.FindNetwork(caller.tenant, network));
      if (!row) return NoNetwork(network);
      CAISSON_ASSIGN(const auto before, rows.NetworksOf(id));
      networks.clear();
      for (const store::Network& one : before) networks.insert(one.id);
      if (networks.contains(row->id) == in) return {};
      changed = row->id;
      if (in) {
        networks.insert(row->id);
        return rows.AddMember(row->id, id);
      }
      networks.erase(row->id);
      CAISSON_TRY(rows.RemoveMember(row->id, id));
      return {};
    });
  };
  CAISSON_TRY(write(shall_be_in));
  if (changed.empty() && !shall_be_in) {
    return Fail(errors::kControlNotFound,
                fmt::format("the sandbox is not in the network {}", network.substr(0, 64)));
  }
  if (changed.empty()) return sandbox;
  if (auto told = DriverOf(sandbox).SetSharedNetworks(id, networks); !told) {
    CAISSON_TRY(write(!shall_be_in));
    if (told.error().code == errors::kEgressBadNetwork) {
      return FailAt("id", told.error().code, told.error().message);
    }
    return Fail(OfDriver(told.error(), "the networks could not be changed and are as before"));
  }
  neighbours_.TellTenant(sandbox);
  return sandbox;
}

Result<Sandbox> Sandboxes::Join(const Caller& caller, const std::string& id,
                                const std::string& network) {
  return ChangeMembership(caller, id, network, true);
}

Result<Sandbox> Sandboxes::Leave(const Caller& caller, const std::string& id,
                                 const std::string& network) {
  return ChangeMembership(caller, id, network, false);
}

}  // namespace caisson::control
