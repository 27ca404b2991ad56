// SPDX-License-Identifier: Apache-2.0
// What of the gateway has to do with rules by name: policies as the filter and the gate hold them,
// and what the gate asks for.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <utility>

#include "egress/network.h"
#include "errors/egress.h"

namespace caisson::egress {

using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds kWatch{1};

}  // namespace

class Gateway::Events final : public GateEvents {
 public:
  explicit Events(Gateway& gateway) : gateway_(gateway) {}
  std::vector<std::uint32_t> Pin(const GatePin& pin) override { return gateway_.Pin(pin); }
  void Denied(const GateDenial& denial) override { gateway_.NoteDenial(denial); }
  void Counted(const GateCounters& counters) override { gateway_.NoteUse(counters); }

 private:
  Gateway& gateway_;
};

Gateway::Gateway(GatewayOptions options)
    : options_(std::move(options)), events_(std::make_unique<Events>(*this)) {}

Gateway::~Gateway() = default;

// A gate that does not start is no reason to have no machines: rules by name are refused then.
Result<void> Gateway::StartGate() {
  if (!options_.start_gate) return {};
  GateOptions options;
  options.namespace_fd = namespace_.get();
  options.resolvers.reserve(resolvers_.size());
  for (const Resolver& resolver : resolvers_)
    options.resolvers.push_back({.address = resolver.outside});
  auto started = options_.start_gate(options, *events_);
  if (started) {
    gate_ = *std::move(started);
    watcher_ = std::jthread([this](const std::stop_token& stop) { WatchGate(stop); });
  } else {
    gate_failure_ = std::move(started).error();
  }
  return {};
}

// A gate that lives and says nothing would let guests hang: whoever does not answer this is ended
// by GateProcess and started anew. The address is the network's own, which is no machine's.
void Gateway::WatchGate(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  for (std::uint64_t generation = 1; !stop.stop_requested();) {
    wake.wait_for(lock, stop, kWatch, [] { return false; });
    if (stop.stop_requested()) return;
    {
      const std::lock_guard order(gate_mutex_);
      if (told_.empty()) continue;
    }
    (void)gate_->SetMachine(options_.pool.first, generation++, {});
  }
}

// First the filter: from then on no packet passes by the old rules, whatever the gate does. The
// gate is told before the change is reported, so that new names are open by then. One that does not
// obey is ended by GateProcess, and all connections with it.
Result<void> Gateway::ApplyAndTell(MachineRules rules, Rules which) {
  bool names = rules.policy.opens_names();
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = members_.find(rules.index); found != members_.end())
      names = names || found->second.generation > 0;
    if (!names) return ApplyLocked(rules, which);
  }
  const std::lock_guard order(gate_mutex_);
  {
    const std::lock_guard lock(mutex_);
    CAISSON_TRY(ApplyLocked(rules, which));
  }
  TellGateLocked(rules.index);
  return {};
}

void Gateway::TellGate(std::uint32_t index) {
  const std::lock_guard order(gate_mutex_);
  TellGateLocked(index);
}

void Gateway::TellGateLocked(std::uint32_t index) {
  if (!gate_) return;
  std::uint64_t generation = 0;
  std::vector<NameRule> rules;
  {
    const std::lock_guard lock(mutex_);
    const auto found = members_.find(index);
    if (found != members_.end() && found->second.pins) {
      rules = found->second.pins->rules().rules();
      generation = found->second.generation;
    }
  }
  const auto told = told_.find(index);
  if (told != told_.end() && told->second == generation) return;
  if (generation > 0) {
    told_[index] = generation;
    (void)gate_->SetMachine(AddressOf(index), generation, rules);
  } else if (told != told_.end()) {
    told_.erase(told);
    (void)gate_->Forget(AddressOf(index));
  }
}

// A machine of which this process knows nothing yet may have rules from an earlier one.
Result<Gateway::Member> Gateway::Recall(const MachineRules& rules, Rules which) {
  const auto found = members_.find(rules.index);
  if (found != members_.end() || which == Rules::kNew) {
    return which == Rules::kNew ? Member{} : found->second;
  }
  Member member;
  CAISSON_ASSIGN(const auto mark, filter_->ReadCounter(NamesMark(rules.index)));
  member.has_names = mark.has_value();
  // What it had pinned stays: it belongs to the same rules. Another policy drops it all.
  if (mark && mark->packets == Fingerprint(rules.policy)) member.policy = rules.policy;
  return member;
}

Result<void> Gateway::ApplyLocked(const MachineRules& wanted, Rules which) {
  MachineRules rules = wanted;
  const std::uint32_t index = rules.index;
  CAISSON_ASSIGN(Member member, Recall(rules, which));
  const Clock::time_point now = Clock::now();
  const bool same = member.policy == rules.policy;
  rules.has_names = member.has_names;
  std::vector<PinnedPort> standing;
  if (rules.policy.opens_names()) {
    NameRules names(rules.policy.names());
    if (!member.pins) {
      member.pins.emplace(std::move(names));
    } else if (!same) {
      member.pins->Replace(std::move(names), now);
    }
    standing = member.pins->Standing(now);
    if (!same || member.generation == 0) member.generation = ++generation_;
  } else {
    member.pins.reset();
    member.generation = 0;
  }
  rules.pinned = standing;
  const auto done = filter_->Commit(which == Rules::kNew ? MachineBatch(rules)
                                    : same               ? SamePolicyBatch(rules)
                                                         : PolicyBatch(rules));
  if (!done) {
    if (done.error().code == errors::kEgressFilterUnknown) {
      cut_.insert(index);
      members_.erase(index);  // to be recalled from the filter
      CAISSON_TRY(links_->SetDown(LinkName(index)));
    }
    return done;
  }
  member.has_names = member.has_names || rules.policy.opens_names();
  member.policy = rules.policy;
  members_.insert_or_assign(index, std::move(member));
  if (!cut_.contains(index)) return {};
  CAISSON_TRY(SetUpEnd(index));
  cut_.erase(index);
  return {};
}

Gateway::Member* Gateway::MemberOf(std::uint32_t address) {
  if (address < options_.pool.first || address > options_.pool.last) return nullptr;
  const auto found = members_.find(address - options_.pool.first);
  return found == members_.end() ? nullptr : &found->second;
}

bool Gateway::IsOfHost(std::uint32_t address) const {
  return std::ranges::find(host_addresses_, address) != host_addresses_.end();
}

// The gate may be in a guest's hands: nothing that it says is taken for true. It does not know the
// host's addresses; a name that leads to one, among others, is opened without that.
std::vector<std::uint32_t> Gateway::Pin(const GatePin& pin) {
  const std::lock_guard lock(mutex_);
  Member* member = MemberOf(pin.machine);
  const std::uint32_t index = pin.machine - options_.pool.first;
  if (member == nullptr || !member->pins || member->generation != pin.generation ||
      cut_.contains(index)) {
    return {};
  }
  std::vector<std::uint32_t> addresses = pin.addresses;
  const auto is_of_host = [this](std::uint32_t each) { return IsOfHost(each); };
  const NameRule* rule = member->pins->rules().First(pin.name);
  if (const auto own = std::ranges::find_if(addresses, is_of_host);
      rule != nullptr && own != addresses.end()) {
    NoteDenialLocked({.machine = pin.machine,
                      .generation = pin.generation,
                      .kind = GateDenialKind::kRebinding,
                      .name = pin.name,
                      .address = *own,
                      .rule = static_cast<std::uint16_t>(rule->index)});
  }
  std::erase_if(addresses, is_of_host);
  if (addresses.empty()) return {};
  const Clock::time_point now = Clock::now();
  const auto change =
      member->pins->Add(pin.name, addresses, std::chrono::seconds(pin.seconds), now);
  if (!change) return {};
  if (filter_->Commit(PinBatch(index, change->pinned, change->dropped))) return addresses;
  // What this process takes for pinned and what the filter holds must not part. Should this fail
  // too, the filter closes by itself when the answers end, and with the next policy.
  member->pins->Withdraw(pin.name, now);
  (void)filter_->Commit(RepinBatch(index, member->pins->Standing(now)));
  return {};
}

}  // namespace caisson::egress
