// SPDX-License-Identifier: Apache-2.0
// What a machine may reach, as its owner wrote it and as it is enforced. Plain data; parsing needs
// no network and no names are looked up.
//
//   rule:  host | host:port | *.host | ip | ip:port | cidr | cidr:port | *
//
// No rules, null and "*" mean every public address. With any other rule nothing is open but what
// the rules name. A rule without a port opens TCP, UDP and echo requests (ping), one with a port
// TCP and UDP to that port. Ranges of ClosedRanges() (egress/address.h) are open to nobody: a rule
// that lies in them is accepted and echoed, because clients write "240.0.0.0/4" for "nothing", and
// opens nothing; Effective() says so rule by rule. IPv6 is dropped whole, so its rules are refused.
//
// A rule by name opens what the name resolves to, and the name itself to the resolver. Without a
// port it opens TCP 80 and 443, where each connection must say the name (Host, SNI); so does one
// with port 80 or 443. With another port it opens TCP and UDP to that port of the addresses, where
// nothing checks the name: Effective() says "address" of it. "*.example.com" means one or more
// labels below example.com, and not example.com itself. Beside "*" rules by name add nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "egress/address.h"
#include "json/value.h"

namespace caisson::egress {

inline constexpr std::size_t kMaxRules = 1000;
inline constexpr std::size_t kMaxRuleBytes =
    262;  // "*.", a name of 253 bytes, ":65535", rounded up

struct AddressRule {
  Range range;
  std::optional<std::uint16_t> port;  // empty: all
  std::size_t index = 0;              // in Policy::rules()
  bool operator==(const AddressRule&) const = default;
};

inline constexpr std::uint16_t kHttpPort = 80;
inline constexpr std::uint16_t kHttpsPort = 443;

// A name, or with `wildcard` everything below it and not the name itself.
struct NameRule {
  std::string name;  // lower case, ASCII, without "*." and without a dot at its end
  bool wildcard = false;
  std::optional<std::uint16_t> port;  // empty: 80 and 443
  std::string text;                   // as it was written
  std::size_t index = 0;              // in Policy::rules()
  // Whether connections are checked for the name; else they are opened by address.
  bool is_checked() const { return !port || *port == kHttpPort || *port == kHttpsPort; }
  bool operator==(const NameRule&) const = default;
};

// Whether rules by name are taken: only for what enforces them (Capabilities::host_name_rules).
enum class HostNames : std::uint8_t { kRefused, kEnforced };

// One rule of the grammar.
struct Rule {
  bool everything = false;  // "*"
  std::optional<AddressRule> address;
  std::optional<NameRule> name;
};
// Fails with egress.bad_rule and egress.ipv6_unsupported; the message begins with "egress[index]"
// and says what to write instead. Rules by name are parsed: whether they are taken is the policy's.
Result<Rule> ParseRule(const std::string& text, std::size_t index);

class Policy {
 public:
  // Every public address, without any rule.
  static Policy PublicOnly() { return {}; }
  // Nothing at all; says "240.0.0.0/4", as clients do.
  static Policy DenyAll();
  // Fails as ParseRule, and with egress.too_many_rules and egress.host_names_unsupported.
  static Result<Policy> Parse(const std::vector<std::string>& rules,
                              HostNames names = HostNames::kRefused);

  // Verbatim, in their order.
  const std::vector<std::string>& rules() const { return rules_; }
  bool opens_public() const { return public_; }
  // All that is open when !opens_public(); may lie in closed ranges, partly or wholly.
  const std::vector<AddressRule>& addresses() const { return addresses_; }
  // Rules by name; egress/name_rules.h looks names up in them. Without meaning when opens_public().
  const std::vector<NameRule>& names() const { return names_; }
  // Whether a gate is needed for it: it has rules by name that open something.
  bool opens_names() const { return !public_ && !names_.empty(); }

  // What of it reaches the network: closed ranges taken out, without overlaps.
  std::vector<Range> OpenOnAllPorts() const;
  struct PortRanges {
    std::uint16_t port;
    std::vector<Range> ranges;
  };
  std::vector<PortRanges> OpenOnPorts() const;  // by port

  // {"enforced":true, "default":"drop"|"public", "names":"resolved"|"allowed"|"none",
  //  "ipv6":"dropped", "exceptions":[], "rules":[{"rule","enforced":"name"|"address"|"nothing",
  //  "opens":["203.0.113.0/24"…],"port"?,"ports":[80,443]?,"closed":["private addresses…"…]?}]}:
  // what GET …/egress adds to the echo. "allowed": names of the rules and no others.
  json::Value Effective() const;

  bool operator==(const Policy&) const = default;

 private:
  std::vector<std::string> rules_;
  bool public_ = true;
  std::vector<AddressRule> addresses_;
  std::vector<NameRule> names_;
};

}  // namespace caisson::egress
