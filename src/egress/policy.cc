// SPDX-License-Identifier: Apache-2.0
#include "egress/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "base/foreign_text.h"
#include "errors/egress.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kMaxName = 253;
constexpr std::size_t kMaxLabel = 63;
constexpr std::size_t kShownRule = 80;
constexpr std::string_view kDenyAll = "240.0.0.0/4";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNumber(std::string_view text) { return !text.empty() && std::ranges::all_of(text, IsDigit); }
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// One rule being read; says which it is in every mistake.
class RuleReader {
 public:
  RuleReader(const std::string& text, std::size_t index) : text_(text), index_(index) {}

  Result<Rule> Read() const {
    if (text_.empty())
      return Bad("is empty; leave it out, or write \"*\" for all public addresses");
    if (text_.size() > kMaxRuleBytes) {
      return Bad(fmt::format("has {} bytes; a rule has {} at most", text_.size(), kMaxRuleBytes));
    }
    for (const char c : text_) {
      if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) {
        return Bad("has a space or a control character; write one rule a string, without spaces");
      }
      if (static_cast<unsigned char>(c) >= 0x80) {
        return Bad("is not ASCII; write the name's ASCII form, as \"xn--bcher-kva.example\"");
      }
    }
    if (text_ == "*") return Rule{.everything = true, .address = {}, .name = {}};
    if (text_.find("://") != std::string::npos) {
      return Bad("is a URL; write the host alone, as \"example.com\" or \"example.com:443\"");
    }
    return ReadParts();
  }

 private:
  std::unexpected<Status> Bad(const std::string& what) const {
    return Fail(errors::kEgressBadRule, fmt::format("egress[{}] {} {}", index_, Quoted(), what));
  }
  std::string Quoted() const { return "\"" + ShowForeignLine(text_, kShownRule) + "\""; }

  Result<Rule> ReadParts() const {
    if (text_[0] == '[' || std::ranges::count(text_, ':') > 1) {
      return Fail(errors::kEgressIpv6Unsupported,
                  fmt::format("egress[{}] {} looks like IPv6, which is dropped for every machine; "
                              "write IPv4 addresses",
                              index_, Quoted()));
    }
    const std::string_view text = text_;
    const std::size_t colon = text.find(':');
    std::optional<std::uint16_t> port;
    if (colon != std::string_view::npos) {
      CAISSON_ASSIGN(port, ReadPort(text.substr(colon + 1)));
    }
    const std::string_view place = text.substr(0, colon);
    if (place.find('/') != std::string_view::npos) return ReadNetwork(place, port);
    if (const auto address = ParseAddress(place)) {
      return Rule{.address = AddressRule{{*address, *address}, port, index_}, .name = {}};
    }
    return ReadHost(place, port);
  }

  Result<std::uint16_t> ReadPort(std::string_view text) const {
    unsigned port = 0;
    if (IsNumber(text) && text.size() <= 5 && text[0] != '0') {
      for (const char c : text) port = port * 10 + static_cast<unsigned>(c - '0');
    }
    if (port == 0 || port > 65535) return Bad("has no port from 1 to 65535 behind the colon");
    return static_cast<std::uint16_t>(port);
  }

  Result<Rule> ReadNetwork(std::string_view place, std::optional<std::uint16_t> port) const {
    const std::size_t slash = place.find('/');
    const auto address = ParseAddress(place.substr(0, slash));
    const std::string_view length = place.substr(slash + 1);
    if (!address) return Bad("has a slash but no IPv4 address before it; write \"203.0.113.0/24\"");
    int prefix = 0;
    for (const char c : length.substr(0, 2)) prefix = prefix * 10 + (c - '0');
    if (!IsNumber(length) || length.size() > 2 || (length.size() == 2 && length[0] == '0') ||
        prefix > 32) {
      return Bad("has no prefix length from 0 to 32 behind the slash");
    }
    const Range range = NetworkOf(*address, prefix);
    if (range.first != *address) {
      return Bad(
          fmt::format("has bits behind its prefix; write \"{}/{}\" for the network or \"{}\" "
                      "for the address",
                      FormatAddress(range.first), prefix, FormatAddress(*address)));
    }
    return Rule{.address = AddressRule{range, port, index_}, .name = {}};
  }

  Result<Rule> ReadHost(std::string_view place, std::optional<std::uint16_t> port) const {
    NameRule rule{.name = {},
                  .wildcard = place.starts_with("*."),
                  .port = port,
                  .text = text_,
                  .index = index_};
    if (place == "*") {
      return Bad(
          "is \"*\" with a port; write \"0.0.0.0/0:443\" for one port of all public addresses");
    }
    std::string_view rest = rule.wildcard ? place.substr(2) : place;
    if (rest.find('*') != std::string_view::npos) {
      return Bad("has a * that is not the first label; write \"*.example.com\"");
    }
    if (rest.ends_with('.')) return Bad("ends in a dot; leave the dot out");
    if (rest.empty()) return Bad("names no host; write \"example.com\"");
    if (rest.size() > kMaxName) return Bad("has a host name of more than 253 characters");
    std::ranges::transform(rest, std::back_inserter(rule.name), Lower);
    CAISSON_TRY(CheckLabels(rule.name));
    return Rule{.address = {}, .name = std::move(rule)};
  }

  Result<void> CheckLabels(std::string_view name) const {
    std::string_view label;
    while (!name.empty()) {
      const std::size_t dot = name.find('.');
      label = name.substr(0, dot);
      name.remove_prefix(dot == std::string_view::npos ? name.size() : dot + 1);
      if (label.empty()) return Bad("has an empty label: two dots in a row, or one at the start");
      if (label.size() > kMaxLabel) return Bad("has a label of more than 63 characters");
      const bool fits = std::ranges::all_of(label, [](char c) {
        return (c >= 'a' && c <= 'z') || IsDigit(c) || c == '-' || c == '_';
      });
      if (!fits || label.front() == '-' || label.back() == '-') {
        return Bad(
            "is none of: host, host:port, *.host, ip, ip:port, cidr, cidr:port, *; a label of a "
            "host "
            "name has letters, digits, - and _ and no - at an end");
      }
    }
    // What programs might take for an address, as 127.1 or 0x7f.1 (WHATWG URL, "ends in a number").
    if (IsNumber(label) || label.starts_with("0x")) {
      return Bad(
          "ends in a number, yet is no IPv4 address; write four decimal numbers, as "
          "\"203.0.113.7\"");
    }
    return {};
  }

  const std::string& text_;
  std::size_t index_;
};

std::vector<Range> OpenPartsOf(const std::vector<Range>& ranges) {
  std::vector<Range> open;
  for (const Range& range : Merged(ranges)) {
    const std::vector<Range> parts = OpenParts(range);
    open.insert(open.end(), parts.begin(), parts.end());
  }
  return open;
}

json::Array Texts(const std::vector<Range>& ranges) {
  json::Array texts;
  for (const Range& range : ranges) texts.emplace_back(FormatRange(range));
  return texts;
}

json::Array WhyClosed(const Range& range) {
  json::Array why;
  for (const ClosedRange& closed : ClosedRanges()) {
    if (closed.range.last >= range.first && closed.range.first <= range.last) {
      why.emplace_back(FormatRange(closed.range) + ": " + closed.why);
    }
  }
  return why;
}

json::Object EffectOf(const std::string& text, const AddressRule& rule) {
  const std::vector<Range> open = OpenParts(rule.range);
  json::Object effect{
      {"rule", text}, {"enforced", open.empty() ? "nothing" : "address"}, {"opens", Texts(open)}};
  if (rule.port) effect.Set("port", static_cast<int>(*rule.port));
  if (json::Array why = WhyClosed(rule.range); !why.empty()) effect.Set("closed", std::move(why));
  return effect;
}

json::Object EffectOf(const NameRule& rule, bool needed) {
  json::Object effect{{"rule", rule.text},
                      {"enforced", needed && rule.is_checked() ? "name" : "address"},
                      {"opens", json::Array{(rule.wildcard ? "*." : "") + rule.name}}};
  if (rule.port) {
    effect.Set("port", static_cast<int>(*rule.port));
  } else {
    effect.Set("ports", json::Array{static_cast<int>(kHttpPort), static_cast<int>(kHttpsPort)});
  }
  return effect;
}

}  // namespace

Result<Rule> ParseRule(const std::string& text, std::size_t index) {
  return RuleReader(text, index).Read();
}

Policy Policy::DenyAll() {
  Policy policy;
  policy.rules_ = {std::string(kDenyAll)};
  policy.public_ = false;
  policy.addresses_ = {{NetworkOf(*ParseAddress("240.0.0.0"), 4), std::nullopt, 0}};
  return policy;
}

Result<Policy> Policy::Parse(const std::vector<std::string>& rules, HostNames names) {
  if (rules.size() > kMaxRules) {
    return Fail(errors::kEgressTooManyRules,
                fmt::format("egress has {} rules; there may be {}: join addresses to networks",
                            rules.size(), kMaxRules));
  }
  Policy policy;
  policy.rules_ = rules;
  policy.public_ = rules.empty();
  for (std::size_t i = 0; i < rules.size(); ++i) {
    CAISSON_ASSIGN(Rule rule, ParseRule(rules[i], i));
    if (rule.name && names == HostNames::kRefused) {
      return Fail(
          errors::kEgressHostNamesUnsupported,
          fmt::format("egress[{}] \"{}\" is a rule by host name, which is not enforced here; "
                      "write addresses or networks, as \"203.0.113.7:443\"",
                      i, ShowForeignLine(rules[i], kShownRule)));
    }
    if (rule.everything) policy.public_ = true;
    if (rule.address) policy.addresses_.push_back(*rule.address);
    if (rule.name) policy.names_.push_back(*std::move(rule.name));
  }
  return policy;
}

std::vector<Range> Policy::OpenOnAllPorts() const {
  std::vector<Range> ranges;
  for (const AddressRule& rule : addresses_) {
    if (!rule.port) ranges.push_back(rule.range);
  }
  return OpenPartsOf(ranges);
}

std::vector<Policy::PortRanges> Policy::OpenOnPorts() const {
  std::map<std::uint16_t, std::vector<Range>> by_port;
  for (const AddressRule& rule : addresses_) {
    if (rule.port) by_port[*rule.port].push_back(rule.range);
  }
  std::vector<PortRanges> open;
  for (const auto& [port, ranges] : by_port) {
    std::vector<Range> parts = OpenPartsOf(ranges);
    if (!parts.empty()) open.push_back({port, std::move(parts)});
  }
  return open;
}

json::Value Policy::Effective() const {
  json::Array rules;
  std::size_t address = 0;
  std::size_t name = 0;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (address < addresses_.size() && addresses_[address].index == i) {
      rules.emplace_back(EffectOf(rules_[i], addresses_[address++]));
    } else if (name < names_.size() && names_[name].index == i) {
      rules.emplace_back(EffectOf(names_[name++], opens_names()));
    } else {
      rules.emplace_back(json::Object{{"rule", rules_[i]},
                                      {"enforced", "address"},
                                      {"opens", json::Array{"every public address"}}});
    }
  }
  return json::Object{{"enforced", true},
                      {"default", public_ ? "public" : "drop"},
                      {"names", public_         ? "resolved"
                                : opens_names() ? "allowed"
                                                : "none"},
                      {"ipv6", "dropped"},
                      {"exceptions", json::Array{}},
                      {"rules", std::move(rules)}};
}

}  // namespace caisson::egress
