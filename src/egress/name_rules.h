// SPDX-License-Identifier: Apache-2.0
// A machine's rules by name, compiled for look-ups. Says what a name is allowed; where the name
// comes from (a question to the resolver, the Host of a request, the SNI of a TLS hello) and what
// it resolves to are its callers' concern. Plain data; copies are whole; reading is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "egress/policy.h"

namespace caisson::egress {

// The form in which names are compared: lower case, without one dot at the end. Empty when it is
// none that a rule could name: longer than 253 bytes, an empty label or one of more than 63, or
// other characters than letters, digits, "-" and "_".
std::string CanonicalName(std::string_view name);

class NameRules {
 public:
  NameRules() = default;
  explicit NameRules(std::span<const NameRule> rules);

  bool empty() const { return rules_.empty(); }
  const std::vector<NameRule>& rules() const& { return rules_; }
  const std::vector<NameRule>& rules() const&& = delete;

  // The first rule, in their order, that `name` falls under; it need not be canonical. Null: the
  // name is not allowed and must not be asked for. They point into this object. A look-up makes no
  // lists: guests say names as often as they like.
  const NameRule* First(std::string_view name) const&;
  const NameRule* First(std::string_view name) const&& = delete;
  // The first that opens `port`, too; null: none does.
  const NameRule* Find(std::string_view name, std::uint16_t port) const&;
  const NameRule* Find(std::string_view name, std::uint16_t port) const&& = delete;

  // All that `name` falls under, in their order.
  std::vector<const NameRule*> FindAll(std::string_view name) const&;
  std::vector<const NameRule*> FindAll(std::string_view name) const&& = delete;

  // The ports that rules open for the addresses of a name: checked ones (80, 443) by the proxy, the
  // others directly. Sorted, each once.
  struct Ports {
    std::vector<std::uint16_t> checked;  // TCP
    std::vector<std::uint16_t> direct;   // TCP and UDP
    bool operator==(const Ports&) const = default;
  };
  Ports PortsOf(std::string_view name) const;

 private:
  template <typename Visit>
  void ForEach(std::string_view name, const Visit& visit) const;
  std::vector<NameRule> rules_;
  // To indexes in rules_.
  std::map<std::string, std::vector<std::size_t>, std::less<>> exact_;
  std::map<std::string, std::vector<std::size_t>, std::less<>> below_;
};

// Whether the rule opens `port`.
bool Opens(const NameRule& rule, std::uint16_t port);

}  // namespace caisson::egress
