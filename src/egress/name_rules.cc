// SPDX-License-Identifier: Apache-2.0
#include "egress/name_rules.h"

#include <algorithm>
#include <array>

namespace caisson::egress {
namespace {

constexpr std::size_t kMaxName = 253;
constexpr std::size_t kMaxLabel = 63;

void AddOnce(std::vector<std::uint16_t>& ports, std::uint16_t port) {
  const auto at = std::ranges::lower_bound(ports, port);
  if (at == ports.end() || *at != port) ports.insert(at, port);
}

using NameBytes = std::array<char, kMaxName>;

// In `bytes`, of which the result is a part.
std::string_view Canonical(std::string_view name, NameBytes& bytes) {
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty() || name.size() > kMaxName) return "";
  std::size_t label = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool upper = c >= 'A' && c <= 'Z';
    bytes[i] = upper ? static_cast<char>(c - 'A' + 'a') : c;
    if (c == '.') {
      if (label == 0) return "";
      label = 0;
      continue;
    }
    if (++label > kMaxLabel) return "";
    if (!upper && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '_')
      return "";
  }
  return label == 0 ? "" : std::string_view(bytes.data(), name.size());
}

}  // namespace

std::string CanonicalName(std::string_view name) {
  NameBytes bytes;
  return std::string(Canonical(name, bytes));
}

bool Opens(const NameRule& rule, std::uint16_t port) {
  return rule.port ? *rule.port == port : port == kHttpPort || port == kHttpsPort;
}

NameRules::NameRules(std::span<const NameRule> rules) : rules_(rules.begin(), rules.end()) {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    (rules_[i].wildcard ? below_ : exact_)[rules_[i].name].push_back(i);
  }
}

// Of every rule that `name` falls under, in no order, the index.
template <typename Visit>
void NameRules::ForEach(std::string_view name, const Visit& visit) const {
  NameBytes bytes;
  const std::string_view canonical = Canonical(name, bytes);
  if (canonical.empty()) return;
  const auto visit_all = [&](const auto& rules, std::string_view key) {
    const auto at = rules.find(key);
    if (at == rules.end()) return;
    for (const std::size_t index : at->second) visit(index);
  };
  visit_all(exact_, canonical);
  if (below_.empty()) return;
  for (std::size_t dot = canonical.find('.'); dot != std::string_view::npos;
       dot = canonical.find('.', dot + 1)) {
    visit_all(below_, canonical.substr(dot + 1));
  }
}

const NameRule* NameRules::First(std::string_view name) const& {
  std::size_t first = rules_.size();
  ForEach(name, [&first](std::size_t index) { first = std::min(first, index); });
  return first == rules_.size() ? nullptr : &rules_[first];
}

const NameRule* NameRules::Find(std::string_view name, std::uint16_t port) const& {
  std::size_t first = rules_.size();
  ForEach(name, [&](std::size_t index) {
    if (index < first && Opens(rules_[index], port)) first = index;
  });
  return first == rules_.size() ? nullptr : &rules_[first];
}

std::vector<const NameRule*> NameRules::FindAll(std::string_view name) const& {
  std::vector<const NameRule*> found;
  ForEach(name, [&](std::size_t index) { found.push_back(&rules_[index]); });
  std::ranges::sort(found);  // they are in one vector
  return found;
}

NameRules::Ports NameRules::PortsOf(std::string_view name) const {
  Ports ports;
  ForEach(name, [&](std::size_t index) {
    const NameRule& rule = rules_[index];
    if (!rule.port) {
      AddOnce(ports.checked, kHttpPort);
      AddOnce(ports.checked, kHttpsPort);
    } else {
      AddOnce(rule.is_checked() ? ports.checked : ports.direct, *rule.port);
    }
  });
  return ports;
}

}  // namespace caisson::egress
