// SPDX-License-Identifier: Apache-2.0
#include "egress/machine_rules.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "egress/ruleset.h"

namespace caisson::egress {
namespace {

struct Names {
  explicit Names(std::uint32_t index)
      : outbound(fmt::format("outbound{}", index)),
        inbound(fmt::format("inbound{}", index)),
        redirects(fmt::format("redirects{}", index)),
        checked(fmt::format("checked{}", index)),
        addresses(fmt::format("addresses{}", index)),
        ports(fmt::format("ports{}", index)),
        direct_open(fmt::format("directopen{}", index)),
        direct_held(fmt::format("directheld{}", index)),
        checked_open(fmt::format("checkedopen{}", index)),
        checked_held(fmt::format("checkedheld{}", index)),
        cap(fmt::format("cap{}", index)),
        sent(SentCounter(index)),
        received(ReceivedCounter(index)),
        refused(RefusedCounter(index)),
        mark(NamesMark(index)) {}
  std::string outbound, inbound;                                     // chains
  std::string redirects, checked;                                    // chains, for rules by name
  std::string addresses, ports;                                      // what its policy opens
  std::string direct_open, direct_held, checked_open, checked_held;  // what names resolved to
  std::string cap, sent, received, refused, mark;
};

// Twice what may be pinned: elements that have ended are swept now and then.
constexpr std::uint32_t kPinSetSize = 2 * kMaxPinnedPorts;

// All that only rules by name need. It stays until the machine goes.
void AddNameParts(FilterBatch& batch, const Names& names) {
  for (const std::string& set :
       {names.direct_open, names.direct_held, names.checked_open, names.checked_held}) {
    batch.AddPinSet(set, kPinSetSize);
  }
  batch.AddChain(names.redirects);
  batch.AddChain(names.checked);
  batch.AddAddressRule(names.redirects, Side::kDestination, names.addresses, "direct");
  batch.AddPortRule(names.redirects, Side::kDestination, names.ports, "direct");
  batch.AddPortRule(names.redirects, Side::kDestination, names.direct_open, "direct");
  batch.AddJumpRule(names.redirects, "to_names");
  batch.AddPortRule(names.redirects, Side::kDestination, names.checked_open, "to_proxy");
  batch.AddOriginalRule(names.checked, names.checked_held, "open");
  batch.AddPortRule(names.outbound, Side::kDestination, FlowState::kNew, names.direct_open, "open");
  batch.AddPortRule(names.outbound, Side::kDestination, FlowState::kOpen, names.direct_held,
                    "open");
  batch.AddPortRule(names.inbound, Side::kSource, names.direct_held, "answered");
}

std::vector<FilterBatch::Pin> PinsOf(std::span<const PinnedPort> ports, bool checked, bool held) {
  std::vector<FilterBatch::Pin> pins;
  for (const PinnedPort& each : ports) {
    const auto lifetime = held ? each.held : each.open;
    if (each.checked == checked && lifetime.count() > 0)
      pins.push_back({each.address, each.port, lifetime});
  }
  return pins;
}

void AddPinned(FilterBatch& batch, const Names& names, std::span<const PinnedPort> ports) {
  batch.AddPins(names.direct_open, PinsOf(ports, false, false));
  batch.AddPins(names.direct_held, PinsOf(ports, false, true));
  batch.AddPins(names.checked_open, PinsOf(ports, true, false));
  batch.AddPins(names.checked_held, PinsOf(ports, true, true));
}

void FlushPinned(FilterBatch& batch, const Names& names) {
  for (const std::string& set :
       {names.direct_open, names.direct_held, names.checked_open, names.checked_held}) {
    batch.FlushSet(set);
  }
}

// Adding first, so that there is something to delete.
void DeletePinned(FilterBatch& batch, const Names& names, std::span<const PinnedPort> ports) {
  const auto drop = [&batch](const std::string& set, const std::vector<FilterBatch::Pin>& pins) {
    batch.AddPins(set, pins);
    batch.DeletePins(set, pins);
  };
  drop(names.direct_open, PinsOf(ports, false, false));
  drop(names.direct_held, PinsOf(ports, false, true));
  drop(names.checked_open, PinsOf(ports, true, false));
  drop(names.checked_held, PinsOf(ports, true, true));
}

// Whether questions and checked connections go to the gate.
void SwitchGate(FilterBatch& batch, const Names& names, const MachineRules& rules) {
  batch.AddAddress("gated", rules.address);
  batch.AddJump("redirects_of", rules.address, names.redirects);
  batch.AddJump("checked_of", rules.address, names.checked);
  if (rules.policy.opens_names()) return;
  for (const char* each : {"gated", "redirects_of", "checked_of"})
    batch.DeleteAddress(each, rules.address);
}

void AddPolicy(FilterBatch& batch, const MachineRules& rules) {
  const Names names(rules.index);
  batch.AddQuota(names.cap, rules.cap_bytes);
  batch.AddAddress("names", rules.address);
  if (rules.policy.opens_public()) {
    batch.AddRanges(names.addresses, {{0, 0xffffffff}});  // closed ranges are refused before
    return;
  }
  batch.DeleteAddress("names", rules.address);
  batch.AddRanges(names.addresses, rules.policy.OpenOnAllPorts());
  for (const auto& [port, ranges] : rules.policy.OpenOnPorts()) {
    batch.AddRanges(names.ports, ranges, port);
  }
}

void AddNames(FilterBatch& batch, const MachineRules& rules) {
  if (!rules.has_names && !rules.policy.opens_names()) return;
  const Names names(rules.index);
  if (!rules.has_names) AddNameParts(batch, names);
  batch.AddCounter(names.mark);
  batch.DeleteCounter(names.mark);
  batch.AddCounter(names.mark, Fingerprint(rules.policy));
  SwitchGate(batch, names, rules);
  if (rules.has_names) FlushPinned(batch, names);
  AddPinned(batch, names, rules.pinned);
}

}  // namespace

std::string SentCounter(std::uint32_t index) { return fmt::format("sent{}", index); }
std::string ReceivedCounter(std::uint32_t index) { return fmt::format("received{}", index); }

std::string RefusedCounter(std::uint32_t index) { return fmt::format("refused{}", index); }
std::string NamesMark(std::uint32_t index) { return fmt::format("names{}", index); }

// FNV-1a; the counter that keeps it has 64 bits.
std::uint64_t Fingerprint(const Policy& policy) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::string& rule : policy.rules()) {
    for (const char c : rule + "\n") hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

FilterBatch MachineBatch(const MachineRules& rules) {
  const Names names(rules.index);
  FilterBatch batch;
  for (const std::string& counter : {names.sent, names.received, names.refused})
    batch.AddCounter(counter);
  batch.AddAddressSet(names.addresses);
  batch.AddPortSet(names.ports);
  batch.AddChain(names.outbound);
  batch.AddChain(names.inbound);
  batch.AddAddressRule(names.outbound, Side::kDestination, names.addresses, "open");
  batch.AddPortRule(names.outbound, Side::kDestination, names.ports, "open");
  batch.AddAddressRule(names.inbound, Side::kSource, names.addresses, "answered");
  batch.AddPortRule(names.inbound, Side::kSource, names.ports, "answered");
  AddPolicy(batch, rules);
  batch.AddObject("cap_of", rules.address, names.cap);
  batch.AddObject("sent_of", rules.address, names.sent);
  batch.AddObject("received_of", rules.address, names.received);
  batch.AddObject("refused_of", rules.address, names.refused);
  batch.AddJump("outbound_of", rules.address, names.outbound);
  batch.AddJump("inbound_of", rules.address, names.inbound);
  AddNames(batch, rules);
  batch.AddSource("sources", LinkName(rules.index), rules.address);
  return batch;
}

FilterBatch PolicyBatch(const MachineRules& rules) {
  FilterBatch batch = SamePolicyBatch(rules);
  AddNames(batch, rules);
  return batch;
}

FilterBatch SamePolicyBatch(const MachineRules& rules) {
  const Names names(rules.index);
  FilterBatch batch;
  batch.FlushSet(names.addresses);
  batch.FlushSet(names.ports);
  AddPolicy(batch, rules);
  return batch;
}

FilterBatch PinBatch(std::uint32_t index, std::span<const PinnedPort> pinned,
                     std::span<const PinnedPort> dropped) {
  const Names names(index);
  FilterBatch batch;
  DeletePinned(batch, names, dropped);
  DeletePinned(batch, names, pinned);  // so that they get their new lifetimes
  AddPinned(batch, names, pinned);
  return batch;
}

FilterBatch RepinBatch(std::uint32_t index, std::span<const PinnedPort> standing) {
  const Names names(index);
  FilterBatch batch;
  FlushPinned(batch, names);
  AddPinned(batch, names, standing);
  return batch;
}

FilterBatch RemovalBatch(std::uint32_t index, std::uint32_t address, bool has_names) {
  const Names names(index);
  FilterBatch batch;
  batch.DeleteSource("sources", LinkName(index), address);
  batch.AddAddress("names", address);  // so that it can be deleted
  for (const char* each :
       {"names", "outbound_of", "inbound_of", "cap_of", "sent_of", "received_of", "refused_of"}) {
    batch.DeleteAddress(each, address);
  }
  if (has_names) {
    SwitchGate(batch, names, {.index = index, .address = address, .policy = Policy::DenyAll()});
    batch.DeleteChain(names.redirects);
    batch.DeleteChain(names.checked);
    batch.DeleteCounter(names.mark);
  }
  batch.DeleteChain(names.outbound);
  batch.DeleteChain(names.inbound);
  if (has_names) {
    for (const std::string& set :
         {names.direct_open, names.direct_held, names.checked_open, names.checked_held}) {
      batch.DeleteSet(set);
    }
  }
  batch.DeleteSet(names.addresses);
  batch.DeleteSet(names.ports);
  batch.DeleteQuota(names.cap);
  for (const std::string& counter : {names.sent, names.received, names.refused})
    batch.DeleteCounter(counter);
  return batch;
}

}  // namespace caisson::egress
