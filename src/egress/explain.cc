// SPDX-License-Identifier: Apache-2.0
#include "egress/explain.h"

#include <algorithm>
#include <utility>

#include "base/foreign_text.h"
#include "egress/address.h"
#include "egress/name_rules.h"
#include "errors/egress.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kShown = 80;
constexpr const char* kRefusedAtOnce =
    "TCP: a reset at once; all else: ICMP \"administratively prohibited\"";
constexpr const char* kNoSuchName = "no such name (NXDOMAIN), at once; nobody was asked";

struct Finding {
  bool open = false;
  const char* enforced = "nothing";
  json::Array rules;
  std::string because;
  std::string sees;
};

void AddRule(Finding& finding, const Policy& policy, std::size_t index, json::Value ports) {
  finding.rules.emplace_back(json::Object{{"rule", policy.rules()[index]},
                                          {"index", static_cast<int>(index)},
                                          {"ports", std::move(ports)}});
}

json::Value PortsOf(const std::optional<std::uint16_t>& port) {
  return port ? json::Value(json::Array{static_cast<int>(*port)}) : json::Value("all");
}

const ClosedRange* FindClosed(std::uint32_t address) {
  for (const ClosedRange& each : ClosedRanges()) {
    if (each.range.first <= address && address <= each.range.last) return &each;
  }
  return nullptr;
}

Finding ExplainAddress(const Policy& policy, std::uint32_t address,
                       const std::optional<std::uint16_t>& port) {
  Finding finding;
  if (const ClosedRange* closed = FindClosed(address)) {
    finding.because = std::string("closed to everybody, whatever the rules say: ") +
                      FormatRange(closed->range) + ", " + closed->why;
    finding.sees = kRefusedAtOnce;
    return finding;
  }
  if (policy.opens_public()) {
    return {.open = true,
            .enforced = "public",
            .rules = {},
            .because = "every public address is open",
            .sees = "the destination"};
  }
  for (const AddressRule& rule : policy.addresses()) {
    const bool holds = rule.range.first <= address && address <= rule.range.last &&
                       (!rule.port || !port || *rule.port == *port);
    if (holds) AddRule(finding, policy, rule.index, PortsOf(rule.port));
  }
  finding.open = !finding.rules.empty();
  if (finding.open) {
    finding.enforced = "address";
    finding.because = "a rule by address opens it";
    finding.sees = "the destination, whatever it is called";
  } else {
    finding.because = "no rule by address has it";
    if (policy.opens_names()) {
      finding.because +=
          "; a rule by name opens an address only once the name has been resolved to it, and only "
          "to connections that say that name";
    }
    finding.sees = kRefusedAtOnce;
  }
  return finding;
}

Finding ExplainAllowedName(const Policy& policy, const std::vector<const NameRule*>& rules,
                           const std::optional<std::uint16_t>& port) {
  Finding finding;
  bool is_checked = false;
  for (const NameRule* rule : rules) {
    if (port && !Opens(*rule, *port)) continue;
    AddRule(finding, policy, rule->index,
            rule->port ? PortsOf(rule->port)
                       : json::Value(json::Array{int{kHttpPort}, int{kHttpsPort}}));
    is_checked |= rule->is_checked() && (!port || *port == kHttpPort || *port == kHttpsPort);
  }
  finding.open = !finding.rules.empty();
  if (!finding.open) {
    finding.because = "the name is allowed, but at other ports; a rule \"host:port\" opens one";
    finding.sees = std::string("the name's addresses; then ") + kRefusedAtOnce;
    return finding;
  }
  if (is_checked) {
    finding.enforced = "name";
    finding.because =
        "a rule by name has it: the name is resolved, and a connection to its addresses must say "
        "this name (the SNI of TLS, the Host of each HTTP request)";
    finding.sees =
        "the destination by TCP; a reset at once for a connection that says another "
        "name, or none";
  } else {
    finding.enforced = "address";
    finding.because =
        "a rule with a port that is neither 80 nor 443: the addresses that the name resolves to "
        "are "
        "opened at this port, without a check of the name";
    finding.sees = "the destination, and whatever else has its addresses";
  }
  return finding;
}

Finding ExplainName(const Policy& policy, const std::string& name,
                    const std::optional<std::uint16_t>& port) {
  if (policy.opens_public()) {
    return {.open = true,
            .enforced = "public",
            .rules = {},
            .because = "every public address is open, and the host's name servers are asked",
            .sees =
                "the destination, unless the name resolves to an address that is closed to "
                "everybody"};
  }
  Finding finding;
  if (!policy.opens_names()) {
    finding.because = "the list has no rules by name: no name is resolved";
    finding.sees = "no answer for the name: questions are refused at once";
    return finding;
  }
  const NameRules names(policy.names());
  const auto rules = names.FindAll(name);
  if (!rules.empty()) return ExplainAllowedName(policy, rules, port);
  finding.because =
      "no rule has this name; \"*.example.com\" has what lies below example.com, and "
      "not example.com itself";
  finding.sees = kNoSuchName;
  return finding;
}

}  // namespace

Result<Destination> ParseDestination(const std::string& text) {
  const auto bad = [&] {
    return Fail(errors::kEgressBadRule,
                "\"" + ShowForeignLine(text, kShown) +
                    "\" is no destination; write HOST or HOST:PORT, as \"example.com:443\" or "
                    "\"203.0.113.7\"");
  };
  // The grammar of rules is that of destinations, less what stands for many.
  auto rule = ParseRule(text, 0);
  if (!rule && rule.error().code == errors::kEgressIpv6Unsupported) {
    return Fail(errors::kEgressIpv6Unsupported,
                "IPv6 is dropped for every machine: nothing is reached by it, and no name is "
                "resolved to it");
  }
  if (!rule || rule->everything || text.find('/') != std::string::npos) return bad();
  if (rule->address)
    return Destination{FormatAddress(rule->address->range.first), rule->address->port};
  if (rule->name->wildcard) return bad();
  return Destination{rule->name->name, rule->name->port};
}

json::Value Explain(const Policy& policy, const Destination& destination) {
  const auto address = ParseAddress(destination.host);
  Finding finding = address ? ExplainAddress(policy, *address, destination.port)
                            : ExplainName(policy, destination.host, destination.port);
  json::Object explained{{"host", destination.host}};
  if (destination.port) explained.Set("port", static_cast<int>(*destination.port));
  explained.Set("open", finding.open);
  explained.Set("enforced", finding.enforced);
  explained.Set("rules", std::move(finding.rules));
  explained.Set("because", std::move(finding.because));
  explained.Set("guest_sees", std::move(finding.sees));
  return explained;
}

}  // namespace caisson::egress
