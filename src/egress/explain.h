// SPDX-License-Identifier: Apache-2.0
// What a policy does with one destination, for people: which rule decides, how it is enforced, what
// the guest sees. Follows from the rules alone; nothing is looked up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "egress/policy.h"
#include "json/value.h"

namespace caisson::egress {

struct Destination {
  std::string host;  // a name or an IPv4 address
  std::optional<std::uint16_t> port;
};
// "example.com", "example.com:443", "203.0.113.7:22". Fails with egress.bad_rule,
// egress.ipv6_unsupported.
Result<Destination> ParseDestination(const std::string& text);

// {"host", "port"?, "open": true|false, "enforced": "name"|"address"|"public"|"nothing",
//  "rules": [{"rule", "index", "ports": [80, 443]|"all"}…], "because": "…", "guest_sees": "…"}:
// "rules" are those that the destination falls under; without a port "open" is true when any is.
json::Value Explain(const Policy& policy, const Destination& destination);

}  // namespace caisson::egress
