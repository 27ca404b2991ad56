// SPDX-License-Identifier: Apache-2.0
#include "egress/ruleset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <initializer_list>

namespace caisson::egress {
namespace {

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
  map outbound_of {{ type ipv4_addr : verdict; }}
  map inbound_of {{ type ipv4_addr : verdict; }}
  map names_of {{ type ipv4_addr : verdict; }}
  map answers_of {{ type ipv4_addr : verdict; }}
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
  chain outbound {{
    ct state invalid drop
    ct state new add @flows {{ ip saddr ct count over {flows} }} goto refuse
    ct status dnat ip saddr vmap @names_of
    ip daddr @closed goto refuse
    ip saddr vmap @outbound_of
    goto refuse
  }}
  chain inbound {{
    ct state != {{ established, related }} drop
    ct direction original drop
    ct status dnat ip daddr vmap @answers_of
    ip daddr vmap @inbound_of
    drop
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

constexpr const char* kOpenProtocols = "meta l4proto { tcp, udp }";

// nft takes no empty list of elements.
void AddElements(std::vector<std::string>& commands, const std::string& set,
                 const std::vector<std::string>& elements) {
  if (elements.empty()) return;
  commands.push_back(
      fmt::format("add element inet {} {} {{ {} }}", kTable, set, fmt::join(elements, ", ")));
}

std::vector<std::string> PortElements(const Policy& policy) {
  std::vector<std::string> elements;
  for (const auto& [port, ranges] : policy.OpenOnPorts()) {
    for (const Range& range : ranges) {
      elements.push_back(fmt::format("{} . {}", FormatRange(range), port));
    }
  }
  return elements;
}

class MachineText {
 public:
  explicit MachineText(std::uint32_t index, std::uint32_t address)
      : index_(index), address_(FormatAddress(address)) {}

  // All that a machine has exists afterwards, whatever was there.
  void Declare() {
    for (const char* chain : {"open", "outbound", "answered", "inbound"}) Add("chain", chain, "");
    Add("set", "addresses", "{ type ipv4_addr; flags interval; }");
    Add("set", "ports", "{ type ipv4_addr . inet_service; flags interval; }");
    Add("counter", "sent", "");
    Add("counter", "received", "");
  }
  void Quota(std::uint64_t bytes) {
    Add("quota", "cap", fmt::format("{{ over {} bytes }}", bytes));
  }
  void Flush() {
    for (const char* chain : {"outbound", "inbound", "open", "answered"}) Do("flush chain", chain);
    Do("flush set", "addresses");
    Do("flush set", "ports");
  }
  void Rules(std::initializer_list<std::pair<const char*, std::string>> rules) {
    for (const auto& [chain, rule] : rules) {
      commands_.push_back(fmt::format("add rule inet {} {} {}", kTable, Name(chain), rule));
    }
  }
  void Elements(const char* set, const std::vector<std::string>& elements) {
    AddElements(commands_, Name(set), elements);
  }
  // An entry of a map of all machines; taking away what is not there is an error of nft's, so that
  // it is put there before.
  void Enter(const char* map, const char* chain, bool stays = true) {
    for (const char* verb : {"add", "delete"}) {
      commands_.push_back(fmt::format("{} element inet {} {} {{ {} : jump {} }}", verb, kTable, map,
                                      address_, Name(chain)));
      if (stays) return;
    }
  }
  void Source(bool stays = true) {
    for (const char* verb : {"add", "delete"}) {
      commands_.push_back(fmt::format("{} element inet {} sources {{ \"{}\" . {} }}", verb, kTable,
                                      LinkName(index_), address_));
      if (stays) return;
    }
  }
  // The count of connections that was begun for the address.
  void ForgetFlows() {
    for (const char* form : {"add element inet {0} flows {{ {1} ct count over {2} }}",
                             "delete element inet {0} flows {{ {1} }}"}) {
      commands_.push_back(fmt::format(fmt::runtime(form), kTable, address_, kMaxFlows));
    }
  }
  void Delete() {
    for (const char* chain : {"outbound", "inbound", "open", "answered"}) Do("delete chain", chain);
    for (const char* set : {"addresses", "ports"}) Do("delete set", set);
    Do("delete quota", "cap");
    Do("delete counter", "sent");
    Do("delete counter", "received");
  }
  std::string Name(const char* what) const { return fmt::format("{}{}", what, index_); }
  std::string text() const { return fmt::format("{}", fmt::join(commands_, "; ")); }

 private:
  void Add(const char* kind, const char* name, const std::string& form) {
    commands_.push_back(fmt::format("add {} inet {} {} {}", kind, kTable, Name(name), form));
  }
  void Do(const char* verb, const char* name) {
    commands_.push_back(fmt::format("{} inet {} {}", verb, kTable, Name(name)));
  }

  std::uint32_t index_;
  std::string address_;
  std::vector<std::string> commands_;
};

}  // namespace

std::string LinkName(std::uint32_t index) { return fmt::format("m{}", index); }
std::string SentCounter(std::uint32_t index) { return fmt::format("sent{}", index); }
std::string ReceivedCounter(std::uint32_t index) { return fmt::format("received{}", index); }

std::string VersionMark(const GatewayRules& rules) {
  const std::string text =
      std::string(kGatewayTable) + ClosedElements() + NameRules(rules.resolvers);
  return fmt::format("version_{:016x}", std::hash<std::string>{}(text));
}

std::string GatewayText(const GatewayRules& rules) {
  return fmt::format(fmt::runtime(kGatewayTable), fmt::arg("closed", ClosedElements()),
                     fmt::arg("mark", VersionMark(rules)),
                     fmt::arg("names", NameRules(rules.resolvers)), fmt::arg("up", kGatewayUplink),
                     fmt::arg("flows", kMaxFlows));
}

std::string HostTable(const std::string& uplink) { return "caisson_" + uplink; }

std::string HostText(const HostRules& rules) {
  std::string resolvers;
  for (const std::uint32_t address : rules.resolvers) {
    resolvers += fmt::format("    ip daddr {} meta l4proto {{ tcp, udp }} th dport 53 accept\n",
                             FormatAddress(address));
  }
  const std::string others =
      rules.forwards_only_ours
          ? fmt::format("    iifname != \"{0}\" oifname != \"{0}\" drop\n", rules.uplink)
          : "";
  return fmt::format(fmt::runtime(kHostTable), fmt::arg("table", HostTable(rules.uplink)),
                     fmt::arg("uplink", rules.uplink),
                     fmt::arg("transit", FormatRange(rules.transit)),
                     fmt::arg("resolvers", resolvers), fmt::arg("others", others));
}

std::string MachineCommands(const MachineRules& rules) {
  MachineText machine(rules.index, rules.address);
  machine.Declare();
  machine.Quota(rules.cap_bytes);
  machine.Flush();
  machine.Rules(
      {{"open", fmt::format("quota name \"{}\" goto refuse", machine.Name("cap"))},
       {"open", fmt::format("counter name \"{}\" accept", machine.Name("sent"))},
       {"answered", fmt::format("counter name \"{}\" accept", machine.Name("received"))}});
  const std::string open = machine.Name("open");
  const std::string answered = machine.Name("answered");
  if (rules.policy.opens_public()) {
    machine.Rules({{"outbound", fmt::format("{} goto {}", kOpenProtocols, open)},
                   {"outbound", fmt::format("icmp type echo-request goto {}", open)},
                   {"inbound", fmt::format("ip saddr != @closed goto {}", answered)}});
  } else {
    const std::string any = machine.Name("addresses");
    const std::string ports = machine.Name("ports");
    machine.Elements("addresses", [&] {
      std::vector<std::string> texts;
      for (const Range& range : rules.policy.OpenOnAllPorts()) texts.push_back(FormatRange(range));
      return texts;
    }());
    machine.Elements("ports", PortElements(rules.policy));
    machine.Rules(
        {{"outbound", fmt::format("{} ip daddr @{} goto {}", kOpenProtocols, any, open)},
         {"outbound",
          fmt::format("{} ip daddr . th dport @{} goto {}", kOpenProtocols, ports, open)},
         {"outbound", fmt::format("icmp type echo-request ip daddr @{} goto {}", any, open)},
         {"inbound", fmt::format("ip saddr @{} goto {}", any, answered)},
         {"inbound",
          fmt::format("{} ip saddr . th sport @{} goto {}", kOpenProtocols, ports, answered)}});
  }
  // Who refuses a packet on the way, or cannot take one of its size, is any router.
  machine.Rules({{"inbound", fmt::format("ct state related icmp type {{ destination-unreachable, "
                                         "time-exceeded, parameter-problem }} goto {}",
                                         answered)}});
  machine.Source();
  machine.Enter("outbound_of", "outbound");
  machine.Enter("inbound_of", "inbound");
  machine.Enter("names_of", "open", rules.policy.opens_public());
  machine.Enter("answers_of", "answered", rules.policy.opens_public());
  return machine.text();
}

std::string RemovalCommands(std::uint32_t index, std::uint32_t address) {
  MachineText machine(index, address);
  machine.Declare();
  machine.Quota(kNoCap);
  machine.Source(false);
  machine.ForgetFlows();
  machine.Enter("outbound_of", "outbound", false);
  machine.Enter("inbound_of", "inbound", false);
  machine.Enter("names_of", "open", false);
  machine.Enter("answers_of", "answered", false);
  machine.Flush();
  machine.Delete();
  return machine.text();
}

}  // namespace caisson::egress
