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

Result<Pins::Change> Pins::Add(const std::string& name, std::span<const std::uint32_t> addresses,
                               std::chrono::seconds ttl, Time now) {
  const std::string canonical = CanonicalName(name);
  const NameRules::Ports ports = rules_.PortsOf(canonical);
  const std::size_t count = ports.checked.size() + ports.direct.size();
  if (count == 0) return Refused("no rule allows the name");
  if (addresses.size() > kMaxPinnedAddresses || addresses.size() * count > kMaxPinnedPorts) {
    return Refused(fmt::format("{} resolves to {} addresses, to be opened at {} ports: too many",
                               canonical, addresses.size(), count));
  }
  for (const std::uint32_t address : addresses) CAISSON_TRY(CheckOpen(canonical, address));
  const Pin pin{.open_until = now + std::clamp(ttl, kLeastPinned, kMostPinned),
                .held_until = now + kHeld};
  Change change;
  for (const std::uint32_t number : addresses) {
    Address& address = addresses_[number];
    Pin& known = address.names[canonical];
    known.open_until = std::max(known.open_until, pin.open_until);
    known.held_until = pin.held_until;
    address.last = now;
    const std::vector<PinnedPort> opened = PortsOf(number, address, now);
    total_ += opened.size() - address.count;
    address.count = opened.size();
    change.pinned.insert(change.pinned.end(), opened.begin(), opened.end());
  }
  if (total_ > kMaxPinnedPorts) MakeRoom(now, change);
  return change;
}

void Pins::MakeRoom(Time now, Change& change) {
  Forget(now);
  std::vector<std::pair<Time, std::uint32_t>> by_age;
  for (const auto& [number, address] : addresses_) {
    if (address.last != now) by_age.emplace_back(address.last, number);
  }
  std::ranges::sort(by_age);
  for (const auto& [last, number] : by_age) {
    if (total_ <= kMaxPinnedPorts) return;
    const Address& oldest = addresses_[number];
    const std::vector<PinnedPort> gone = PortsOf(number, oldest, now);
    change.dropped.insert(change.dropped.end(), gone.begin(), gone.end());
    total_ -= oldest.count;
    addresses_.erase(number);
  }
}

void Pins::Replace(NameRules rules, Time now) {
  rules_ = std::move(rules);
  Forget(now);
}

std::vector<PinnedPort> Pins::Standing(Time now) const {
  std::vector<PinnedPort> standing;
  for (const auto& [number, address] : addresses_) {
    for (const PinnedPort& each : PortsOf(number, address, now)) standing.push_back(each);
  }
  return standing;
}

std::vector<PinnedPort> Pins::PortsOf(std::uint32_t number, const Address& address,
                                      Time now) const {
  std::map<std::pair<std::uint16_t, bool>, Pin> ports;
  const auto take = [&ports](const std::vector<std::uint16_t>& of_name, bool checked,
                             const Pin& pin) {
    for (const std::uint16_t port : of_name) {
      Pin& each = ports[{port, checked}];
      each.open_until = std::max(each.open_until, pin.open_until);
      each.held_until = std::max(each.held_until, pin.held_until);
    }
  };
  for (const auto& [name, pin] : address.names) {
    const NameRules::Ports of_name = rules_.PortsOf(name);
    take(of_name.checked, true, pin);
    take(of_name.direct, false, pin);
  }
  std::vector<PinnedPort> pinned;
  for (const auto& [key, pin] : ports) {
    if (pin.held_until <= now) continue;
    pinned.push_back({.address = number,
                      .port = key.first,
                      .checked = key.second,
                      .open = Until(pin.open_until, now),
                      .held = Until(pin.held_until, now)});
  }
  return pinned;
}

void Pins::Forget(Time now) {
  total_ = 0;
  for (auto it = addresses_.begin(); it != addresses_.end();) {
    std::erase_if(it->second.names, [&](const auto& each) {
      return each.second.held_until <= now || rules_.Find(each.first).empty();
    });
    it->second.count = PortsOf(it->first, it->second, now).size();
    total_ += it->second.count;
    it = it->second.names.empty() ? addresses_.erase(it) : std::next(it);
  }
}

}  // namespace caisson::egress
