// SPDX-License-Identifier: Apache-2.0
#include "egress/pins.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "egress/address.h"
#include "errors/egress.h"

namespace caisson::egress {
namespace {

using std::chrono::milliseconds;

std::unexpected<Status> Refused(const std::string& why) {
  return Fail(errors::kEgressPinRefused, why);
}

milliseconds Until(Pins::Time end, Pins::Time now) {
  return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(end - now));
}

Result<void> CheckOpen(const std::string& name, std::uint32_t address) {
  for (const ClosedRange& closed : ClosedRanges()) {
    if (address < closed.range.first || address > closed.range.last) continue;
    return Refused(fmt::format("{} resolves to {}, which is closed to all machines: {}", name,
                               FormatAddress(address), closed.why));
  }
  return {};
}

}  // namespace

void Pins::Extend(Pin& pin, const Pin& by) {
  pin.open_until = std::max(pin.open_until, by.open_until);
  pin.held_until = std::max(pin.held_until, by.held_until);
}

PinnedPort Pins::Shown(std::uint32_t number, const PortKey& key, const Pin& pin, Time now) {
  return {.address = number,
          .port = key.first,
          .checked = key.second,
          .open = Until(pin.open_until, now),
          .held = Until(pin.held_until, now)};
}

std::vector<Pins::PortKey> Pins::PortsOf(const std::string& name) const {
  const NameRules::Ports ports = rules_.PortsOf(name);
  std::vector<PortKey> keys;
  keys.reserve(ports.checked.size() + ports.direct.size());
  for (const std::uint16_t port : ports.checked) keys.emplace_back(port, true);
  for (const std::uint16_t port : ports.direct) keys.emplace_back(port, false);
  std::ranges::sort(keys);
  return keys;
}

// Whether this answer fits, were all others to go.
Result<void> Pins::CheckRoom(const std::string& name, std::span<const std::uint32_t> addresses,
                             const std::vector<PortKey>& ports) const {
  const auto too_many = [&](std::size_t all) {
    return Refused(fmt::format("{} resolves to {} addresses, to be opened at {} ports: too many",
                               name, addresses.size(), all));
  };
  if (addresses.size() > kMaxPinnedAddresses || addresses.size() * ports.size() > kMaxPortsOfAnswer)
    return too_many(ports.size());
  std::size_t all = 0;
  for (const std::uint32_t number : addresses) {
    all += ports.size();
    const auto found = addresses_.find(number);
    if (found == addresses_.end()) continue;
    for (const auto& [key, port] : found->second.ports)
      all += std::ranges::binary_search(ports, key) ? 0 : 1;
  }
  if (all > kMaxPinnedPorts) return too_many(all);
  return {};
}

Result<Pins::Change> Pins::Add(const std::string& name, std::span<const std::uint32_t> addresses,
                               std::chrono::seconds ttl, Time now) {
  const std::string canonical = CanonicalName(name);
  const auto known = names_.find(canonical);
  std::vector<PortKey> ports = known != names_.end() ? known->second.ports : PortsOf(canonical);
  if (ports.empty()) return Refused("no rule allows the name");
  CAISSON_TRY(CheckRoom(canonical, addresses, ports));
  for (const std::uint32_t address : addresses) CAISSON_TRY(CheckOpen(canonical, address));
  Change change;
  if (addresses.empty()) return change;
  const Pin pin{.open_until = now + std::clamp(ttl, kLeastPinned, kMostPinned),
                .held_until = now + kHeld};
  names_[canonical].ports = ports;
  for (const std::uint32_t number : addresses) Put(canonical, number, pin, now);
  MakeRoom(canonical, addresses, now, change.dropped);
  for (const std::uint32_t number : addresses) {
    const Address& address = addresses_.at(number);
    for (const PortKey& key : ports)
      change.pinned.push_back(Shown(number, key, address.ports.at(key).pin, now));
  }
  return change;
}

// The name must be in `names_`.
void Pins::Put(const std::string& name, std::uint32_t number, const Pin& pin, Time last) {
  Name& of_name = names_.at(name);
  Address& address = addresses_[number];
  by_age_.erase({address.last, number});
  address.last = last;
  by_age_.insert({last, number});
  const auto [own, is_new] = address.names.try_emplace(name);
  Extend(own->second, pin);
  for (const PortKey& key : of_name.ports) {
    const auto [port, is_opened] = address.ports.try_emplace(key);
    Extend(port->second.pin, pin);
    if (is_opened) ++total_;
    if (is_new) ++port->second.names;
  }
  of_name.open_until = std::max(of_name.open_until, pin.open_until);
  if (!is_new) return;
  of_name.addresses.insert(number);
  ++pairs_;
}

void Pins::Take(const std::string& name, std::uint32_t number, Time now,
                std::vector<PinnedPort>& dropped) {
  const auto of_name = names_.find(name);
  const auto at = addresses_.find(number);
  Address& address = at->second;
  for (const PortKey& key : of_name->second.ports) {
    const auto port = address.ports.find(key);
    if (--port->second.names > 0) continue;
    dropped.push_back(Shown(number, key, port->second.pin, now));
    address.ports.erase(port);
    --total_;
  }
  of_name->second.addresses.erase(number);
  address.names.erase(name);
  --pairs_;
  if (of_name->second.addresses.empty()) names_.erase(of_name);
  if (!address.names.empty()) return;
  by_age_.erase({address.last, number});
  addresses_.erase(at);
}

void Pins::TakeName(const std::string& name, Time now, std::vector<PinnedPort>& dropped) {
  const std::set<std::uint32_t> numbers = names_.at(name).addresses;
  for (const std::uint32_t number : numbers) Take(name, number, now, dropped);
}

void Pins::TakeAddress(std::uint32_t number, Time now, std::vector<PinnedPort>& dropped) {
  const std::map<std::string, Pin> names = addresses_.at(number).names;
  for (const auto& [name, pin] : names) Take(name, number, now, dropped);
}

// CheckRoom has seen to it that what is kept fits.
void Pins::MakeRoom(const std::string& kept, std::span<const std::uint32_t> addresses, Time now,
                    std::vector<PinnedPort>& dropped) {
  for (auto oldest = by_age_.begin(); total_ > kMaxPinnedPorts && oldest != by_age_.end();) {
    const std::uint32_t number = (oldest++)->second;
    if (std::ranges::find(addresses, number) == addresses.end()) TakeAddress(number, now, dropped);
  }
  while (names_.size() > 1 && (names_.size() > kMaxPinnedNames || pairs_ > kMaxPinnedPairs)) {
    const auto first = std::ranges::min_element(names_, {}, [&kept](const auto& each) {
      return std::pair(each.first == kept, each.second.open_until);
    });
    const std::string name = first->first;  // which goes with it
    TakeName(name, now, dropped);
  }
}

void Pins::Withdraw(const std::string& name, Time now) {
  std::vector<PinnedPort> dropped;
  const std::string canonical = CanonicalName(name);
  if (names_.contains(canonical)) TakeName(canonical, now, dropped);
}

// Those resolved last first, as long as there is room: these rules may open more ports.
void Pins::Replace(NameRules rules, Time now) {
  rules_ = std::move(rules);
  const auto addresses = std::exchange(addresses_, {});
  const auto by_age = std::exchange(by_age_, {});
  names_.clear();
  total_ = 0;
  pairs_ = 0;
  for (auto newest = by_age.rbegin(); newest != by_age.rend(); ++newest) {
    const auto& [last, number] = *newest;
    for (const auto& [name, pin] : addresses.at(number).names) {
      if (pin.held_until <= now) continue;
      if (!names_.contains(name)) {
        std::vector<PortKey> ports = PortsOf(name);
        if (ports.empty()) continue;
        names_[name].ports = std::move(ports);
      }
      Put(name, number, pin, last);
    }
    if (total_ <= kMaxPinnedPorts) continue;
    std::vector<PinnedPort> dropped;
    TakeAddress(number, now, dropped);
    return;
  }
}

std::vector<PinnedPort> Pins::Standing(Time now) const {
  std::vector<PinnedPort> standing;
  for (const auto& [number, address] : addresses_) {
    for (const auto& [key, port] : address.ports) {
      if (port.pin.held_until > now) standing.push_back(Shown(number, key, port.pin, now));
    }
  }
  return standing;
}

}  // namespace caisson::egress
