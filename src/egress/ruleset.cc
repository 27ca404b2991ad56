// SPDX-License-Identifier: Apache-2.0
#include "egress/ruleset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "egress/gate_process.h"

namespace caisson::egress {
namespace {

// Stands in a text where its own mark goes.
constexpr std::string_view kMarkPlace = "version_mark";

std::string ClosedElements() {
  std::vector<std::string> texts;
  for (const ClosedRange& closed : ClosedRanges()) texts.push_back(FormatRange(closed.range));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string ResolverRules(const std::vector<Resolver>& resolvers) {
  std::string text;
  for (const Resolver& resolver : resolvers) {
    text += fmt::format(
        "    ip saddr @names ip daddr {} meta l4proto {{ tcp, udp }} th dport 53 dnat ip to {}\n",
        FormatAddress(resolver.inside), FormatAddress(resolver.outside));
  }
  return text;
}

// A packet of a flow that was opened by a machine is looked up again each time, and so is each
// answer: a policy holds for the next packet, whatever was open before it.
//
// The gate has one socket for the questions of all: what one machine asks beyond twice the gate's
// own budget for it goes no further, so that there is room for the others.
//
// Of what leaves the gateway itself, all that has a socket is the gate's; resets and ICMP have
// none.
constexpr const char* kGatewayTable = R"(table inet caisson {{}}
delete table inet caisson
table inet caisson {{
  set closed {{ type ipv4_addr; flags interval; elements = {{ {closed} }}; }}
  set sources {{ type ifname . ipv4_addr; }}
  set flows {{ type ipv4_addr; size 65536; flags dynamic; }}
  set crowded {{ type ipv4_addr; flags interval; }}
  set few {{ type ipv4_addr; size 65536; flags dynamic; }}
  set told {{ type ipv4_addr; size 65536; flags dynamic, timeout; timeout 1m; }}
  set asked {{ type ipv4_addr; size 65536; flags dynamic, timeout; timeout 1m; }}
  set joined {{ type ipv4_addr . ipv4_addr; }}
  set gated {{ type ipv4_addr; }}
  set resolvers {{ type ipv4_addr;{servers} }}
  set names {{ type ipv4_addr; }}
  set host {{ type ipv4_addr; flags interval; }}
  map outbound_of {{ type ipv4_addr : verdict; }}
  map inbound_of {{ type ipv4_addr : verdict; }}
  map redirects_of {{ type ipv4_addr : verdict; }}
  map checked_of {{ type ipv4_addr : verdict; }}
  map cap_of {{ type ipv4_addr : quota; }}
  map sent_of {{ type ipv4_addr : counter; }}
  map received_of {{ type ipv4_addr : counter; }}
  map refused_of {{ type ipv4_addr : counter; }}
  counter {mark} {{}}
  chain spoofed {{
    type filter hook prerouting priority raw; policy accept;
    meta nfproto != ipv4 drop
    iifname "m*" iifname . ip saddr != @sources drop
  }}
  chain direct {{
    accept
  }}
  chain to_names {{
    meta l4proto {{ tcp, udp }} th dport 53 redirect to :{names_port}
  }}
  chain to_proxy {{
    meta l4proto tcp redirect to :{proxy_port}
  }}
  chain names {{
    type nat hook prerouting priority dstnat; policy accept;
    iifname "m*" ip saddr vmap @redirects_of
{names}  }}
  chain leaving {{
    type nat hook postrouting priority srcnat; policy accept;
    oifname "{up}" masquerade
  }}
  chain refuse {{
    counter name ip saddr map @refused_of
    jump tell
    goto reject_it
  }}
  chain tell {{
    add @told {{ ip saddr limit rate 5/second burst 30 packets }} log group {log} snaplen 96
  }}
  chain reject_it {{
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
    ct state new ip saddr @crowded add @few {{ ip saddr ct count over {few} }} goto refuse
    ct status dnat ip saddr @names goto open
    ip daddr @closed goto refuse
    ip daddr @host goto refuse
    meta l4proto != {{ tcp, udp, icmp }} goto refuse
    meta l4proto icmp icmp type != echo-request goto refuse
    ip saddr vmap @outbound_of
    goto refuse
  }}
  chain among {{
    ct state invalid drop
    ct state new add @flows {{ ip saddr ct count over {flows} }} goto refuse
    ct state new ip saddr @crowded add @few {{ ip saddr ct count over {few} }} goto refuse
    meta l4proto {{ tcp, udp, icmp }} ip saddr . ip daddr @joined accept
    goto refuse
  }}
  chain to_gate {{
    ct state invalid drop
    meta l4proto udp udp dport {names_port} update @asked {{ ip saddr limit rate over 200/second burst 400 packets }} drop
    ct state new tcp dport {names_port} update @asked {{ ip saddr limit rate over 200/second burst 400 packets }} drop
    ct state new add @flows {{ ip saddr ct count over {flows} }} goto refuse
    ct state new ip saddr @crowded add @few {{ ip saddr ct count over {few} }} goto refuse
    ct status dnat meta l4proto {{ tcp, udp }} th dport {names_port} ip saddr @gated goto open
    ct status dnat tcp dport {proxy_port} ip saddr vmap @checked_of
    goto refuse
  }}
  chain from_gate {{
    oifname "m*" ct direction reply ct status dnat goto answered
    oifname != "{up}" drop
    meta l4proto {{ tcp, udp }} ip daddr @resolvers th dport 53 accept
    ip daddr @closed goto reject_it
    ip daddr @host goto reject_it
    tcp dport {{ 80, 443 }} accept
    goto reject_it
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
    iifname "m*" oifname "m*" goto among
    iifname "m*" goto refuse
  }}
  chain input {{
    type filter hook input priority filter; policy drop;
    iifname "lo" accept
    iifname "m*" goto to_gate
    iifname "{up}" ct direction reply ct state {{ established, related }} accept
  }}
  chain output {{
    type filter hook output priority filter; policy accept;
    meta nfproto != ipv4 drop
    meta skuid != 4294967295 goto from_gate
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

RuleText Marked(std::string text) {
  std::string mark = fmt::format("version_{:016x}", std::hash<std::string>{}(text));
  text.replace(text.find(kMarkPlace), kMarkPlace.size(), mark);
  return {std::move(text), std::move(mark)};
}

}  // namespace

std::string LinkName(std::uint32_t index) { return fmt::format("m{}", index); }
RuleText GatewayText(const std::vector<Resolver>& resolvers) {
  std::vector<std::string> servers;
  servers.reserve(resolvers.size());
  for (const Resolver& resolver : resolvers) servers.push_back(FormatAddress(resolver.outside));
  std::ranges::sort(servers);
  servers.erase(std::ranges::unique(servers).begin(), servers.end());
  const std::string elements =
      servers.empty() ? "" : fmt::format(" elements = {{ {} }};", fmt::join(servers, ", "));
  return Marked(fmt::format(
      fmt::runtime(kGatewayTable), fmt::arg("closed", ClosedElements()),
      fmt::arg("mark", kMarkPlace), fmt::arg("names", ResolverRules(resolvers)),
      fmt::arg("servers", elements), fmt::arg("up", kGatewayUplink), fmt::arg("flows", kMaxFlows),
      fmt::arg("few", kMaxFlowsInACrowd), fmt::arg("log", kLogGroup),
      fmt::arg("names_port", kGateNamesPort), fmt::arg("proxy_port", kGateProxyPort)));
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

FilterBatch CrowdBatch(bool is_crowded) {
  FilterBatch batch;
  batch.FlushSet("crowded");
  batch.FlushSet("few");  // only what is opened in this crowd counts
  // In any case: a batch that changes nothing cannot be told from one that was refused.
  batch.AddRanges("crowded", {{0, 0xffffffff}});
  if (!is_crowded) batch.FlushSet("crowded");
  return batch;
}

FilterBatch HostAddressesBatch(const std::vector<std::uint32_t>& addresses) {
  std::vector<Range> ranges;
  ranges.reserve(addresses.size());
  for (const std::uint32_t address : addresses) ranges.push_back({address, address});
  FilterBatch batch;
  batch.FlushSet("host");
  batch.AddRanges("host", Merged(std::move(ranges)));
  return batch;
}

}  // namespace caisson::egress
