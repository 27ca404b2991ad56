// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/gate.h"

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "errors/egress.h"

namespace caisson::egress::gate {
namespace {

constexpr std::chrono::milliseconds kCounterPace{250};

std::unexpected<Status> Violation(const char* what) {
  return Fail(errors::kEgressGateFailed, std::string("The helper broke the protocol: ") + what);
}

}  // namespace

Gate::Gate(Loop loop, os::UniqueFd channel, ProxyOptions options, ResolverOptions names)
    : loop_(std::move(loop)),
      channel_(std::move(channel)),
      machines_([this](const GateMessage& message) { Tell(message); }),
      options_(std::move(options)),
      names_(names) {}

Gate::~Gate() { loop_.Forget(channel_.fd()); }

Result<void> Gate::Run(const GateReady& ready) {
  CAISSON_TRY(
      loop_.Watch(channel_.fd(), {.rank = Rank::kControl}, [this](std::uint32_t) { Channel(); }));
  channel_.Queue(ready);
  Send();
  CountOften();
  CAISSON_TRY(loop_.Run());
  return end_;
}

void Gate::End(Status status) {
  if (end_) end_ = std::unexpected(std::move(status));
  loop_.Stop();
}

void Gate::Channel() {
  // Receive stops when a message is there for sure, which need not be all that has come.
  for (bool more = true; more;) {
    const auto open = channel_.Receive();
    if (!open) return End(open.error());
    more = false;
    for (;;) {
      auto message = channel_.Next();
      if (!message) return End(message.error());
      if (!*message) break;
      if (auto taken = Take(**std::move(message)); !taken) return End(taken.error());
      more = true;
    }
    if (!*open) return loop_.Stop();
  }
  Send();
}

Result<void> Gate::Take(GateMessage message) {
  if (const auto* wish = std::get_if<GateConfigure>(&message)) return Configure(*wish);
  if (proxy_ == nullptr) return Violation("it did not configure first");
  if (const auto* wish = std::get_if<GateMachine>(&message)) {
    SetMachine(*wish);
    return {};
  }
  if (const auto* wish = std::get_if<GateForget>(&message)) {
    Forget(*wish);
    return {};
  }
  if (const auto* answer = std::get_if<GatePinned>(&message)) {
    Pinned(answer->id, answer->addresses);
    return {};
  }
  return Violation("a message that only the gate sends");
}

Result<void> Gate::Configure(const GateConfigure& wish) {
  std::vector<os::UniqueFd> sockets = channel_.TakeDescriptors();
  if (proxy_ != nullptr || sockets.size() != kGateSockets) {
    return Violation("it configures once, with three sockets");
  }
  upstream_ = std::make_unique<Upstream>(loop_, wish.resolvers);
  resolver_ = std::make_unique<Resolver>(
      loop_, machines_, *upstream_,
      [this](Machine& machine, const std::string& name, std::uint32_t seconds,
             const std::vector<std::uint32_t>& addresses, Resolver::Pinned pinned) {
        RequestPin(machine, name, seconds, addresses, std::move(pinned));
      },
      names_);
  proxy_ = std::make_unique<Proxy>(loop_, machines_, options_);
  CAISSON_TRY(resolver_->Serve(std::move(sockets[0]), std::move(sockets[1])));
  return proxy_->Serve(std::move(sockets[2]));
}

void Gate::SetMachine(const GateMachine& wish) {
  if (machines_.Find(wish.address) == nullptr && machines_.size() >= Machines::kMax) {
    return End({errors::kEgressGateFailed, "There are more machines than addresses for them."});
  }
  Machine& machine = machines_.Get(wish.address);
  machine.Replace(wish.generation, NameRules(wish.rules));
  proxy_->Recheck(machine);
  Tell(GateApplied{.address = wish.address, .generation = wish.generation});
}

void Gate::Forget(const GateForget& wish) {
  proxy_->DropFlows(wish.address);
  resolver_->Forget(wish.address);
  machines_.Forget(wish.address);
  Tell(GateApplied{.address = wish.address, .generation = 0});
}

void Gate::RequestPin(Machine& machine, const std::string& name, std::uint32_t seconds,
                      const std::vector<std::uint32_t>& addresses, Resolver::Pinned pinned) {
  const std::uint64_t id = ++last_pin_;
  const Loop::TimerId timer =
      loop_.After(kPatienceForPin, [this, id] { Pinned(id, std::nullopt); });
  waiting_[id] = {std::move(pinned), timer};
  Tell(GatePin{.id = id,
               .machine = machine.address,
               .generation = machine.generation,
               .name = name,
               .seconds = seconds,
               .addresses = addresses});
}

// One that comes too late is for nobody.
void Gate::Pinned(std::uint64_t id, Resolver::Opened opened) {
  const auto node = waiting_.extract(id);
  if (node.empty()) return;
  loop_.Cancel(node.mapped().timer);
  node.mapped().pinned(std::move(opened));
}

void Gate::Tell(const GateMessage& message) {
  const bool may_be_lost = std::holds_alternative<GateDenial>(message);
  if (may_be_lost && channel_.waiting() > kMaxUntold) return;
  channel_.Queue(message);
  Send();
}

void Gate::Send() {
  if (auto sent = channel_.Send(); !sent) End(sent.error());
}

void Gate::CountOften() {
  if (channel_.waiting() <= kMaxUntold) machines_.TellCounters();
  loop_.After(kCounterPace, [this] { CountOften(); });
}

}  // namespace caisson::egress::gate
