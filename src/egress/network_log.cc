// SPDX-License-Identifier: Apache-2.0
// What of the gateway tells owners what was denied to their machines, and lets machines talk to one
// another.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "egress/network.h"
#include "egress/no_network.h"

namespace caisson::egress {
namespace {

constexpr std::uint16_t kNamesPort = 53;
constexpr int kLook = 100;  // milliseconds

bool Contains(const std::vector<Range>& ranges, std::uint32_t address) {
  return std::ranges::any_of(ranges, [address](const Range& range) {
    return address >= range.first && address <= range.last;
  });
}

std::string WhyClosed(std::uint32_t address) {
  for (const ClosedRange& closed : ClosedRanges()) {
    if (address >= closed.range.first && address <= closed.range.last)
      return fmt::format("closed to all machines: {}", closed.why);
  }
  return "";
}

bool HasAddress(const Policy& policy, const RefusedPacket& packet) {
  if (policy.opens_public() || Contains(policy.OpenOnAllPorts(), packet.destination)) return true;
  return std::ranges::any_of(policy.OpenOnPorts(), [&](const Policy::PortRanges& open) {
    return open.port == packet.port && Contains(open.ranges, packet.destination);
  });
}

std::string WhyNoRule(const Policy& policy, const RefusedPacket& packet) {
  const bool is_question = packet.port == kNamesPort;
  if (!policy.opens_names()) {
    return is_question ? "no names are resolved: the policy has no rule by name"
                       : "no rule opens this address at this port";
  }
  if (packet.port == kHttpsPort && ProtocolName(packet.protocol) == "udp")
    return "QUIC is closed to rules by name; connect by TCP";
  return "no rule opens this address at this port, and no allowed name has resolved to it lately";
}

std::string_view WhyDenied(GateDenialKind kind) {
  switch (kind) {
    case GateDenialKind::kName:
      return "no rule allows the name";
    case GateDenialKind::kQuestion:
      return "questions of this type or form are not answered";
    case GateDenialKind::kRebinding:
      return "the name is allowed, but leads to an address that is closed to all machines";
    case GateDenialKind::kResolver:
      return "the name is allowed, but the host's resolvers gave no answer";
    case GateDenialKind::kForeignName:
      return "the connection says a name that no rule allows at this port";
    case GateDenialKind::kForeignAddress:
      return "the name is allowed, but does not resolve to this address";
    case GateDenialKind::kNoName:
      return "the connection says no name";
    case GateDenialKind::kMalformed:
      return "the connection begins with neither TLS nor an HTTP/1 request of one meaning";
    case GateDenialKind::kTunnel:
      return "CONNECT, upgrades and HTTP/2 without TLS are closed to rules by name";
    case GateDenialKind::kLimit:
      return "too many questions or connections at once";
    case GateDenialKind::kPolicyChanged:
      return "the policy was changed and does not allow the open connection";
    case GateDenialKind::kUnreachable:
      return "allowed, but the destination did not take the connection";
  }
  return "";
}

}  // namespace

Result<NetworkLog> Gateway::ReadLog(std::uint32_t index, std::uint64_t after) {
  const std::lock_guard lock(mutex_);
  CAISSON_ASSIGN(const auto refused, filter_->ReadCounter(RefusedCounter(index)));
  const auto found = members_.find(index);
  if (!refused || found == members_.end()) return NoNetwork(index);
  NetworkLog log = log_.Read(index, after);
  log.refused_packets = refused->packets;
  const std::vector<RuleUse> counted = std::exchange(log.rules, {});
  log.rules.reserve(found->second.policy->names().size());
  for (const NameRule& rule : found->second.policy->names()) {
    const auto at = std::ranges::find(counted, rule.text, &RuleUse::rule);
    log.rules.push_back(at == counted.end() ? RuleUse{.rule = rule.text} : *at);
  }
  return log;
}

void Gateway::NoteRefusals(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    pollfd event{refused_->fd(), POLLIN, 0};
    if (::poll(&event, 1, kLook) > 0)
      refused_->Take([this](const RefusedPacket& packet) { NoteRefusal(packet); });
  }
}

void Gateway::NoteRefusal(const RefusedPacket& packet) {
  const std::lock_guard lock(mutex_);
  const Member* member = MemberOf(packet.source);
  if (member == nullptr) return;
  const Policy& policy = *member->policy;
  Denial denial{.kind = "packet",
                .protocol = ProtocolName(packet.protocol),
                .address = FormatAddress(packet.destination),
                .port = packet.port,
                .why = WhyClosed(packet.destination)};
  const bool is_question = packet.port == kNamesPort && !policy.opens_public();
  if (IsOfHost(packet.destination)) {
    denial.why = "an address of the host, which is closed to all machines";
  } else if (packet.destination == inside() && is_question) {
    denial.why = WhyNoRule(policy, packet);
  } else if (packet.destination > inside() && packet.destination <= options_.pool.last) {
    denial.why = "another machine, with which it shares no network";
  } else if (denial.why.empty() && HasAddress(policy, packet)) {
    denial.why = "its traffic has reached its limit, or it has too many connections";
  } else if (denial.why.empty()) {
    denial.why = WhyNoRule(policy, packet);
  }
  log_.Add(packet.source - options_.pool.first, std::move(denial));
}

void Gateway::NoteDenial(const GateDenial& told) {
  const std::lock_guard lock(mutex_);
  NoteDenialLocked(told);
}

void Gateway::NoteDenialLocked(const GateDenial& told) {
  const Member* member = MemberOf(told.machine);
  if (member == nullptr) return;
  const auto& rules = member->policy->rules();  // the gate says NameRule::index
  Denial denial{.kind = std::string(GateDenialName(told.kind)),
                .protocol = told.port == 0 ? "" : "tcp",
                .address = told.address == 0 ? "" : FormatAddress(told.address),
                .port = told.port,
                .name = told.name,
                .why = std::string(WhyDenied(told.kind))};
  if (told.kind == GateDenialKind::kRebinding && IsOfHost(told.address))
    denial.why = "the name is allowed, but leads to an address of the host, which is closed";
  if (told.rule && *told.rule < rules.size() && member->generation == told.generation)
    denial.rule = rules[*told.rule];
  log_.Add(told.machine - options_.pool.first, std::move(denial), told.suppressed);
}

void Gateway::NoteUse(const GateCounters& counters) {
  const std::lock_guard lock(mutex_);
  const Member* member = MemberOf(counters.machine);
  if (member == nullptr) return;
  const std::uint32_t index = counters.machine - options_.pool.first;
  log_.CountDenials(index, counters.denials);
  if (member->generation != counters.generation) return;
  const auto& rules = member->policy->rules();
  for (const GateCounters::Entry& entry : counters.entries) {
    if (entry.rule < rules.size())
      log_.CountUse(index, rules[entry.rule], entry.answers, entry.connections);
  }
}

Result<void> Gateway::Share(std::uint32_t index, const std::set<std::string>& networks) {
  const std::lock_guard lock(mutex_);
  if (links_->IndexOf(LinkName(index)) == 0) return NoNetwork(index);
  return ShareLocked(index, networks);
}

Result<void> Gateway::ShareLocked(std::uint32_t index, const std::set<std::string>& networks) {
  const std::uint32_t address = AddressOf(index);
  CAISSON_ASSIGN(const SharedNetworks::Change change, shared_.Plan(address, networks));
  if (!change.empty()) {
    FilterBatch batch;
    batch.AddPairs("joined", change.opened);
    batch.AddPairs("joined", change.closed);  // so that there is something to delete
    batch.DeletePairs("joined", change.closed);
    CAISSON_TRY(filter_->Commit(batch));
  }
  shared_.Do(address, networks, change);
  return {};
}

Result<void> Gateway::KnowShared() {
  CAISSON_ASSIGN(const std::vector<FilterBatch::Pair> pairs, filter_->ReadPairs("joined"));
  shared_.Know(pairs);
  return {};
}

}  // namespace caisson::egress
