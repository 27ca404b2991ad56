// SPDX-License-Identifier: Apache-2.0
// What of the gateway makes the networks of machines, gives them rules, and takes them away.
#include "egress/network.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "egress/network_parts.h"
#include "egress/no_network.h"
#include "egress/tap.h"
#include "errors/egress.h"
#include "os/network_namespace.h"
#include "os/syscall_error.h"

namespace caisson::egress {
namespace {

constexpr const char* kMachineLink = "eth0";
// Between that link and a tap: their own numbers, since the machine behind the tap has its own.
constexpr const char* kBridge = "bridge";
constexpr Mac kBridgedLinkMac = {0x02, 0xca, 0x15, 0x50, 0x00, 0x04};
constexpr Mac kNamedTapMac = {0x02, 0xca, 0x15, 0x50, 0x00, 0x05};

Mac MachineMac(std::uint32_t index) {
  return {0x02,
          0xca,
          static_cast<std::uint8_t>(index >> 24),
          static_cast<std::uint8_t>(index >> 16),
          static_cast<std::uint8_t>(index >> 8),
          static_cast<std::uint8_t>(index)};
}

std::optional<std::uint32_t> IndexIn(std::string_view text) {
  std::uint32_t index = 0;
  if (text.empty() || text.size() > 9) return std::nullopt;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    index = index * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return index;
}

// The guest has no power over this namespace, which another user namespace owns: so that root in it
// may use low ports and ping.
Result<void> PrepareMachine() {
  CAISSON_TRY(SwitchOffIpv6("default"));
  CAISSON_TRY(SetSysctl("ipv4/ip_unprivileged_port_start", "0"));
  return SetSysctl("ipv4/ping_group_range", "0 2147483647");
}

}  // namespace

std::string Gateway::PathOf(std::uint32_t index) const {
  return fmt::format("{}/machines/{}", options_.directory, index);
}

// In turn, so that an address comes back late: what answers to its last owner finds nobody.
Result<std::uint32_t> Gateway::TakeIndex() {
  const std::uint32_t end = options_.pool.last - options_.pool.first;  // the last is the broadcast
  for (std::uint32_t tried = kFirstIndex; tried < end; ++tried) {
    last_ = last_ + 1 < end ? last_ + 1 : kFirstIndex;
    if (used_.insert(last_).second) return last_;
  }
  return Fail(errors::kEgressExhausted,
              fmt::format("all {} addresses of {} are in use; destroy machines", end - kFirstIndex,
                          FormatRange(options_.pool)));
}

Result<void> Gateway::Connect(std::uint32_t index) {
  CAISSON_TRY(os::DropNetworkNamespace(PathOf(index)));
  CAISSON_ASSIGN(const os::UniqueFd inside_fd,
                 os::MakeNetworkNamespace(PathOf(index), PrepareMachine));
  CAISSON_TRY(links_->MakePair({LinkName(index), kGatewayMac}, {kMachineLink, MachineMac(index)},
                               inside_fd.get()));
  std::optional<Links> machine;
  CAISSON_TRY(os::InNetworkNamespace(inside_fd.get(), [&]() -> Result<void> {
    CAISSON_ASSIGN(machine, Links::Open());
    return {};
  }));
  CAISSON_TRY(machine->SetUp({.name = kMachineLink,
                              .address = AddressOf(index),
                              .neighbour = inside(),
                              .neighbour_mac = kGatewayMac,
                              .is_default_route = true}));
  CAISSON_TRY(SetUpEnd(index));
  return machine->AwaitCarrier(kMachineLink);
}

// The namespace has nothing in it, but says that there is a network of this number.
Result<os::UniqueFd> Gateway::ConnectTap(std::uint32_t index) {
  CAISSON_TRY(os::DropNetworkNamespace(PathOf(index)));
  CAISSON_TRY(os::MakeNetworkNamespace(PathOf(index), PrepareMachine));
  os::UniqueFd tap;
  CAISSON_TRY(os::InNetworkNamespace(namespace_.get(), [&]() -> Result<void> {
    CAISSON_ASSIGN(tap, egress::MakeTap({LinkName(index), kGatewayMac}));
    return {};
  }));
  CAISSON_TRY(SetUpEnd(index));
  return tap;
}

Result<void> Gateway::ConnectNamedTap(std::uint32_t index, uid_t owner) {
  CAISSON_TRY(os::DropNetworkNamespace(PathOf(index)));
  CAISSON_ASSIGN(const os::UniqueFd inside_fd,
                 os::MakeNetworkNamespace(PathOf(index), PrepareMachine));
  CAISSON_TRY(links_->MakePair({LinkName(index), kGatewayMac}, {kMachineLink, kBridgedLinkMac},
                               inside_fd.get()));
  std::optional<Links> machine;
  CAISSON_TRY(os::InNetworkNamespace(inside_fd.get(), [&]() -> Result<void> {
    CAISSON_TRY(egress::MakeTap({kNamedTap, kNamedTapMac}, owner));
    CAISSON_ASSIGN(machine, Links::Open());
    return {};
  }));
  CAISSON_TRY(machine->MakeBridge(kBridge, {kMachineLink, kNamedTap}));
  CAISSON_TRY(SetUpEnd(index));
  return machine->AwaitCarrier(kMachineLink);
}

Result<void> Gateway::AwaitNamedTap(std::uint32_t index) {
  CAISSON_ASSIGN(const os::UniqueFd inside_fd, os::OpenNetworkNamespace(PathOf(index)));
  return os::InNetworkNamespace(inside_fd.get(), []() -> Result<void> {
    CAISSON_ASSIGN(Links links, Links::Open());
    return links.AwaitCarrier(kNamedTap);
  });
}

Result<void> Gateway::SetUpEnd(std::uint32_t index) {
  return links_->SetUp({.name = LinkName(index),
                        .address = inside(),
                        .neighbour = AddressOf(index),
                        .neighbour_mac = MachineMac(index)});
}

Result<Network> Gateway::Make(const Policy& policy) {
  std::uint32_t index = 0;
  Result<void> made;
  {
    const std::lock_guard lock(mutex_);
    CAISSON_ASSIGN(index, TakeIndex());
    made = Connect(index);
  }
  if (made) made = ApplyAndTell({index, AddressOf(index), policy}, Rules::kNew);
  if (!made) {
    (void)Remove(index);  // what stays is in List, and closed
    return Fail(std::move(made).error());
  }
  return Network{index, FormatAddress(AddressOf(index)), PathOf(index)};
}

Result<TapNetwork> Gateway::MakeTap(const Policy& policy) {
  std::uint32_t index = 0;
  Result<os::UniqueFd> tap;
  {
    const std::lock_guard lock(mutex_);
    CAISSON_ASSIGN(index, TakeIndex());
    tap = ConnectTap(index);
  }
  Result<void> made = tap ? ApplyAndTell({index, AddressOf(index), policy}, Rules::kNew)
                          : std::unexpected(tap.error());
  if (!made) {
    (void)Remove(index);
    return Fail(std::move(made).error());
  }
  return TapOf(index, *std::move(tap));
}

Result<TapNetwork> Gateway::MakeNamedTap(const Policy& policy, uid_t owner) {
  std::uint32_t index = 0;
  Result<void> made;
  {
    const std::lock_guard lock(mutex_);
    CAISSON_ASSIGN(index, TakeIndex());
    made = ConnectNamedTap(index, owner);
  }
  if (made) made = ApplyAndTell({index, AddressOf(index), policy}, Rules::kNew);
  if (!made) {
    (void)Remove(index);
    return Fail(std::move(made).error());
  }
  return TapOf(index, os::UniqueFd());
}

TapNetwork Gateway::TapOf(std::uint32_t index, os::UniqueFd tap) const {
  return TapNetwork{.network = {index, FormatAddress(AddressOf(index)), PathOf(index)},
                    .tap = std::move(tap),
                    .mac = FormatMac(MachineMac(index)),
                    .gateway = FormatAddress(inside()),
                    .gateway_mac = FormatMac(kGatewayMac)};
}

Result<Network> Gateway::Adopt(std::uint32_t index, const Policy& policy, std::uint64_t cap_bytes) {
  Rules which = Rules::kReplaced;
  {
    const std::lock_guard lock(mutex_);
    if (!os::OpenNetworkNamespace(PathOf(index)) || links_->IndexOf(LinkName(index)) == 0) {
      return NoNetwork(index);
    }
    used_.insert(index);
    cut_.insert(index);  // an earlier process may have cut it off
    CAISSON_ASSIGN(const auto known, filter_->ReadCounter(SentCounter(index)));
    if (!known) which = Rules::kNew;
  }
  CAISSON_TRY(ApplyAndTell({index, AddressOf(index), policy, cap_bytes}, which));
  return Network{index, FormatAddress(AddressOf(index)), PathOf(index)};
}

Result<void> Gateway::Apply(std::uint32_t index, const Policy& policy, std::uint64_t cap_bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (links_->IndexOf(LinkName(index)) == 0) return NoNetwork(index);
  }
  return ApplyAndTell({index, AddressOf(index), policy, cap_bytes}, Rules::kReplaced);
}

// Taking a link away costs the kernel 20 ms, so that it is done beside all else; by then its rules
// are gone, and nothing passes.
Result<void> Gateway::Remove(std::uint32_t index) {
  {
    const std::lock_guard lock(mutex_);
    used_.insert(index);
    if (auto closed = CloseLocked(index); !closed) {
      (void)links_->SetDown(LinkName(index));
      return closed;
    }
  }
  TellGate(index);
  log_.Forget(index);
  {
    const std::lock_guard lock(remover_mutex_);
    CAISSON_TRY(remover_->Remove(LinkName(index)));
  }
  CAISSON_TRY(os::DropNetworkNamespace(PathOf(index)));
  const std::lock_guard lock(mutex_);
  used_.erase(index);
  cut_.erase(index);
  return {};
}

Result<void> Gateway::CloseLocked(std::uint32_t index) {
  CAISSON_TRY(ShareLocked(index, {}));
  CAISSON_ASSIGN(const auto known, filter_->ReadCounter(SentCounter(index)));
  if (known) {
    CAISSON_ASSIGN(const auto mark, filter_->ReadCounter(NamesMark(index)));
    CAISSON_TRY(filter_->Commit(RemovalBatch(index, AddressOf(index), mark.has_value())));
  }
  members_.erase(index);
  CAISSON_TRY(filter_->ForgetFlows(AddressOf(index)));
  for (const char* counts : {"flows", "few"}) {  // there is none when it never opened one
    FilterBatch count;
    count.DeleteAddress(counts, AddressOf(index));
    (void)filter_->Commit(count);
  }
  return {};
}

Result<Traffic> Gateway::ReadTraffic(std::uint32_t index) {
  const std::lock_guard lock(mutex_);
  CAISSON_ASSIGN(const auto sent, filter_->ReadCounter(SentCounter(index)));
  CAISSON_ASSIGN(const auto received, filter_->ReadCounter(ReceivedCounter(index)));
  if (!sent || !received) return NoNetwork(index);
  return Traffic{.sent_bytes = sent->bytes, .received_bytes = received->bytes};
}

Result<std::vector<std::uint32_t>> Gateway::List() {
  const std::lock_guard lock(mutex_);
  return ListLocked();
}

Result<std::vector<std::uint32_t>> Gateway::ListLocked() {
  std::set<std::uint32_t> indexes;
  CAISSON_ASSIGN(const std::vector<std::string> names, links_->Names("m"));
  for (const std::string& name : names) {
    if (const auto index = IndexIn(std::string_view(name).substr(1))) indexes.insert(*index);
  }
  std::error_code error;
  for (std::filesystem::directory_iterator it(options_.directory + "/machines", error), end;
       !error && it != end; it.increment(error)) {
    if (const auto index = IndexIn(it->path().filename().string())) indexes.insert(*index);
  }
  if (error) return os::SyscallError("list " + options_.directory + "/machines", error.value());
  return std::vector<std::uint32_t>(indexes.begin(), indexes.end());
}

}  // namespace caisson::egress
