// SPDX-License-Identifier: Apache-2.0
#include "egress/ruleset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

namespace caisson::egress {
namespace {

// Stands in a text where its own mark goes.
constexpr std::string_view kMarkPlace = "version_mark";

std::string ClosedElements() {
  std::vector<std::string> texts;
  for (const ClosedRange& closed : ClosedRanges()) texts.push_back(FormatRange(closed.range));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string NameRules(const std::vector<Resolver>& resolvers) {
  std::string text;
  for (const Resolver& resolver : resolvers) {
    text += fmt::format(
        "    iifname \"m*\" ip daddr {} meta l4proto {{ tcp, udp }} th dport 53 dnat ip to {}\n",
        FormatAddress(resolver.inside), FormatAddress(resolver.outside));
  }
  return text;
}

// A packet of a flow that was opened by a machine is looked up again each time, and so is each
// answer: a policy holds for the next packet, whatever was open before it.
constexpr const char* kGatewayTable = R"(table inet caisson {{}}
delete table inet caisson
table inet caisson {{
  set closed {{ type ipv4_addr; flags interval; elements = {{ {closed} }}; }}
  set sources {{ type ifname . ipv4_addr; }}
  set flows {{ type ipv4_addr; size 65536; flags dynamic; }}
  set names {{ type ipv4_addr; }}
  set host {{ type ipv4_addr; flags interval; }}
  map outbound_of {{ type ipv4_addr : verdict; }}
  map inbound_of {{ type ipv4_addr : verdict; }}
  map cap_of {{ type ipv4_addr : quota; }}
  map sent_of {{ type ipv4_addr : counter; }}
  map received_of {{ type ipv4_addr : counter; }}
  counter {mark} {{}}
  chain spoofed {{
    type filter hook prerouting priority raw; policy accept;
    meta nfproto != ipv4 drop
    iifname "m*" iifname . ip saddr != @sources drop
  }}
  chain names {{
    type nat hook prerouting priority dstnat; policy accept;
{names}  }}
  chain leaving {{
    type nat hook postrouting priority srcnat; policy accept;
    oifname "{up}" masquerade
  }}
  chain refuse {{
    meta l4proto tcp reject with tcp reset
    reject with icmp type admin-prohibited
  }}
  chain open {{
    quota name ip saddr map @cap_of goto refuse
    counter name ip saddr map @sent_of accept
  }}
  chain answered {{
    counter name ip daddr map @received_of accept
  }}
  chain outbound {{
    ct state invalid drop
    ct state new add @flows {{ ip saddr ct count over {flows} }} goto refuse
    ct status dnat ip saddr @names goto open
    ip daddr @closed goto refuse
    ip daddr @host goto refuse
    meta l4proto != {{ tcp, udp, icmp }} goto refuse
    meta l4proto icmp icmp type != echo-request goto refuse
    ip saddr vmap @outbound_of
    goto refuse
  }}
  chain inbound {{
    ct state != {{ established, related }} drop
    ct direction original drop
    ct status dnat ip daddr @names goto answered
    ct state related icmp type {{ destination-unreachable, time-exceeded, parameter-problem }} goto answered
    ip saddr @closed drop
    ip daddr vmap @inbound_of
  }}
  chain forward {{
    type filter hook forward priority filter; policy drop;
    meta nfproto != ipv4 drop
    iifname "m*" oifname "{up}" goto outbound
    iifname "{up}" oifname "m*" goto inbound
    iifname "m*" goto refuse
  }}
  chain input {{
    type filter hook input priority filter; policy drop;
    iifname "lo" accept
    iifname "m*" goto refuse
  }}
}}
)";

constexpr const char* kHostTable = R"(table inet {table} {{}}
delete table inet {table}
table inet {table} {{
  counter {mark} {{}}
  chain input {{
    type filter hook input priority -10; policy accept;
    iifname != "{uplink}" accept
    meta nfproto != ipv4 drop
{resolvers}    meta l4proto tcp reject with tcp reset
    reject with icmp type admin-prohibited
  }}
  chain forward {{
    type filter hook forward priority -10; policy accept;
    iifname "{uplink}" ip saddr != {transit} drop
    iifname "{uplink}" meta nfproto != ipv4 drop
    oifname "{uplink}" ct state != {{ established, related }} drop
{others}  }}
  chain leaving {{
    type nat hook postrouting priority srcnat; policy accept;
    oifname != "{uplink}" ip saddr {transit} masquerade
  }}
}}
)";

struct Names {
  explicit Names(std::uint32_t index)
      : outbound(fmt::format("outbound{}", index)),
        inbound(fmt::format("inbound{}", index)),
        addresses(fmt::format("addresses{}", index)),
        ports(fmt::format("ports{}", index)),
        cap(fmt::format("cap{}", index)),
        sent(SentCounter(index)),
        received(ReceivedCounter(index)) {}
  std::string outbound, inbound;  // chains
  std::string addresses, ports;   // what its policy opens
  std::string cap, sent, received;
};

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

RuleText Marked(std::string text) {
  std::string mark = fmt::format("version_{:016x}", std::hash<std::string>{}(text));
  text.replace(text.find(kMarkPlace), kMarkPlace.size(), mark);
  return {std::move(text), std::move(mark)};
}

}  // namespace

std::string LinkName(std::uint32_t index) { return fmt::format("m{}", index); }
std::string SentCounter(std::uint32_t index) { return fmt::format("sent{}", index); }
std::string ReceivedCounter(std::uint32_t index) { return fmt::format("received{}", index); }

RuleText GatewayText(const std::vector<Resolver>& resolvers) {
  return Marked(fmt::format(fmt::runtime(kGatewayTable), fmt::arg("closed", ClosedElements()),
                            fmt::arg("mark", kMarkPlace), fmt::arg("names", NameRules(resolvers)),
                            fmt::arg("up", kGatewayUplink), fmt::arg("flows", kMaxFlows)));
}

std::string HostTable(const std::string& uplink) { return "caisson_" + uplink; }

RuleText HostText(const HostRules& rules) {
  std::string resolvers;
  for (const std::uint32_t address : rules.resolvers) {
    resolvers += fmt::format("    ip daddr {} meta l4proto {{ tcp, udp }} th dport 53 accept\n",
                             FormatAddress(address));
  }
  const std::string others =
      rules.forwards_only_ours
          ? fmt::format("    iifname != \"{0}\" oifname != \"{0}\" drop\n", rules.uplink)
          : "";
  return Marked(fmt::format(fmt::runtime(kHostTable), fmt::arg("table", HostTable(rules.uplink)),
                            fmt::arg("mark", kMarkPlace), fmt::arg("uplink", rules.uplink),
                            fmt::arg("transit", FormatRange(rules.transit)),
                            fmt::arg("resolvers", resolvers), fmt::arg("others", others)));
}

FilterBatch HostAddressesBatch(const std::vector<std::uint32_t>& addresses) {
  std::vector<Range> ranges;
  for (const std::uint32_t address : addresses) ranges.push_back({address, address});
  FilterBatch batch;
  batch.FlushSet("host");
  batch.AddRanges("host", Merged(std::move(ranges)));
  return batch;
}

FilterBatch MachineBatch(const MachineRules& rules) {
  const Names names(rules.index);
  FilterBatch batch;
  batch.AddCounter(names.sent);
  batch.AddCounter(names.received);
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
  batch.AddJump("outbound_of", rules.address, names.outbound);
  batch.AddJump("inbound_of", rules.address, names.inbound);
  batch.AddSource("sources", LinkName(rules.index), rules.address);
  return batch;
}

FilterBatch PolicyBatch(const MachineRules& rules) {
  const Names names(rules.index);
  FilterBatch batch;
  batch.FlushSet(names.addresses);
  batch.FlushSet(names.ports);
  AddPolicy(batch, rules);
  return batch;
}

FilterBatch RemovalBatch(std::uint32_t index, std::uint32_t address) {
  const Names names(index);
  FilterBatch batch;
  batch.DeleteSource("sources", LinkName(index), address);
  batch.AddAddress("names", address);  // so that it can be deleted
  for (const char* each :
       {"names", "outbound_of", "inbound_of", "cap_of", "sent_of", "received_of"}) {
    batch.DeleteAddress(each, address);
  }
  batch.DeleteChain(names.outbound);
  batch.DeleteChain(names.inbound);
  batch.DeleteSet(names.addresses);
  batch.DeleteSet(names.ports);
  batch.DeleteQuota(names.cap);
  batch.DeleteCounter(names.sent);
  batch.DeleteCounter(names.received);
  return batch;
}

}  // namespace caisson::egress
