// SPDX-License-Identifier: Apache-2.0
#include "egress/name_rules.h"

#include <algorithm>

namespace caisson::egress {
namespace {

constexpr std::size_t kMaxName = 253;
constexpr std::size_t kMaxLabel = 63;

void AddOnce(std::vector<std::uint16_t>& ports, std::uint16_t port) {
  const auto at = std::ranges::lower_bound(ports, port);
  if (at == ports.end() || *at != port) ports.insert(at, port);
}

}  // namespace

std::string CanonicalName(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty() || name.size() > kMaxName) return "";
  std::string canonical;
  canonical.reserve(name.size());
  std::size_t label = 0;
  for (const char c : name) {
    if (c == '.') {
      if (label == 0) return "";
      label = 0;
      canonical += c;
      continue;
    }
    if (++label > kMaxLabel) return "";
    const bool upper = c >= 'A' && c <= 'Z';
    if (!upper && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '_')
      return "";
    canonical += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return label == 0 ? "" : canonical;
}

bool Opens(const NameRule& rule, std::uint16_t port) {
  return rule.port ? *rule.port == port : port == kHttpPort || port == kHttpsPort;
}

NameRules::NameRules(std::span<const NameRule> rules) : rules_(rules.begin(), rules.end()) {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    (rules_[i].wildcard ? below_ : exact_)[rules_[i].name].push_back(i);
  }
}

std::vector<const NameRule*> NameRules::Find(std::string_view name) const& {
  const std::string canonical = CanonicalName(name);
  if (canonical.empty()) return {};
  std::vector<std::size_t> found;
  const auto take = [&found](const auto& rules, std::string_view key) {
    const auto at = rules.find(key);
    if (at != rules.end()) found.insert(found.end(), at->second.begin(), at->second.end());
  };
  take(exact_, canonical);
  const std::string_view whole = canonical;
  for (std::size_t dot = whole.find('.'); dot != std::string_view::npos;
       dot = whole.find('.', dot + 1)) {
    take(below_, whole.substr(dot + 1));
  }
  std::ranges::sort(found);
  std::vector<const NameRule*> rules;
  rules.reserve(found.size());
  for (const std::size_t index : found) rules.push_back(&rules_[index]);
  return rules;
}

const NameRule* NameRules::Find(std::string_view name, std::uint16_t port) const& {
  for (const NameRule* rule : Find(name)) {
    if (Opens(*rule, port)) return rule;
  }
  return nullptr;
}

NameRules::Ports NameRules::PortsOf(std::string_view name) const {
  Ports ports;
  for (const NameRule* rule : Find(name)) {
    if (!rule->port) {
      AddOnce(ports.checked, kHttpPort);
      AddOnce(ports.checked, kHttpsPort);
    } else {
      AddOnce(rule->is_checked() ? ports.checked : ports.direct, *rule->port);
    }
  }
  return ports;
}

}  // namespace caisson::egress
