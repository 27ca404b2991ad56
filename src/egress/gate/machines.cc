// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/machines.h"

#include <algorithm>
#include <utility>

namespace caisson::egress::gate {
namespace {

// An answer must live for a while after it has been given.
constexpr std::chrono::seconds kShortestAnswer{2};

}  // namespace

bool Budget::Take(Clock::time_point now) {
  if (at_ != Clock::time_point{}) {
    const double seconds = std::chrono::duration<double>(now - at_).count();
    left_ = std::min(most_, left_ + std::max(seconds, 0.0) * per_second_);
  }
  at_ = now;
  if (left_ < 1) return false;
  left_ -= 1;
  return true;
}

const NameRule* Machine::FindRule(std::string_view name) const { return rules.First(name); }

const Pin* Machine::FindAnswer(const std::string& name, Clock::time_point now) const {
  const auto found = names_.find(name);
  if (found == names_.end()) return nullptr;
  const Pin& pin = found->second.pin;
  return pin.generation == generation && pin.until >= now + kShortestAnswer ? &pin : nullptr;
}

bool Machine::IsPinned(const std::string& name, std::uint32_t to, Clock::time_point now) const {
  const auto found = names_.find(name);
  if (found == names_.end()) return false;
  return std::ranges::any_of(found->second.known, [&](const Known& each) {
    return each.address == to && each.until + kGrace >= now;
  });
}

void Machine::Remember(const std::string& name, Pin pin, Clock::time_point now) {
  const auto is_over = [now](Clock::time_point until) { return until + kGrace < now; };
  if (names_.size() >= kMaxNames && !names_.contains(name)) {
    std::erase_if(names_, [&](const auto& each) { return is_over(each.second.pin.until); });
    if (names_.size() >= kMaxNames) {
      names_.erase(std::ranges::min_element(
          names_, {}, [](const auto& each) { return each.second.pin.until; }));
    }
  }
  Name& entry = names_[name];
  std::erase_if(entry.known, [&](const Known& each) {
    return is_over(each.until) ||
           std::ranges::find(pin.addresses, each.address) != pin.addresses.end();
  });
  for (const std::uint32_t each : pin.addresses) entry.known.push_back({each, pin.until});
  if (entry.known.size() > kMaxKnown) {
    entry.known.erase(entry.known.begin(), entry.known.end() - kMaxKnown);
  }
  entry.pin = std::move(pin);
}

void Machine::Replace(std::uint64_t new_generation, NameRules new_rules) {
  generation = new_generation;
  rules = std::move(new_rules);
  counters_.clear();  // of rules that are not there any more
  std::erase_if(names_, [this](const auto& each) { return rules.First(each.first) == nullptr; });
}

GateCounters::Entry& Machine::Counted(const NameRule& rule) {
  GateCounters::Entry& entry = counters_[static_cast<std::uint16_t>(rule.index)];
  entry.rule = static_cast<std::uint16_t>(rule.index);
  return entry;
}

Machine* Machines::Find(std::uint32_t address) {
  const auto found = machines_.find(address);
  return found == machines_.end() ? nullptr : found->second.get();
}

Machine& Machines::Get(std::uint32_t address) {
  auto& machine = machines_[address];
  if (machine == nullptr) machine = std::make_unique<Machine>(address);
  return *machine;
}

void Machines::Deny(Machine& machine, const Denial& denial, Clock::time_point now, bool may_tell) {
  ++machine.denials_;
  if (!may_tell || !machine.told_.Take(now)) {
    ++machine.suppressed_;
    return;
  }
  GateDenial told{.machine = machine.address,
                  .generation = machine.generation,
                  .kind = denial.kind,
                  .name = ShownName(denial.name),
                  .address = denial.address,
                  .port = denial.port,
                  .suppressed = std::exchange(machine.suppressed_, 0)};
  if (denial.rule != nullptr) told.rule = static_cast<std::uint16_t>(denial.rule->index);
  tell_(told);
}

void Machines::TellCounters() {
  for (auto& [address, machine] : machines_) {
    if (machine->counters_.empty() && machine->denials_ == 0) continue;
    GateCounters told{.machine = address,
                      .generation = machine->generation,
                      .denials = std::exchange(machine->denials_, 0),
                      .entries = {}};
    for (const auto& [rule, entry] : std::exchange(machine->counters_, {})) {
      told.entries.push_back(entry);
    }
    tell_(told);
  }
}

std::string ShownName(std::string_view name) {
  std::string shown(name.substr(0, kMaxGateName));
  for (char& c : shown) c = c > 0x20 && c < 0x7f ? c : '?';
  return shown;
}

}  // namespace caisson::egress::gate
