// SPDX-License-Identifier: Apache-2.0
// Which addresses belong to the public Internet, and to nobody's own network. No input or output.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace caisson::http {

// An address of either family; an IPv4 address is its IPv4-mapped IPv6 one.
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};
  auto operator<=>(const IpAddress&) const = default;
  bool is_v4() const;  // mapped, as all IPv4 addresses are here
};

// Canonical texts only ("10.0.0.1", "::1"), without brackets or a zone.
std::optional<IpAddress> ParseIp(std::string_view text);
std::string FormatIp(const IpAddress& address);

// Why no request of an author may go there ("a loopback address"); nullptr for a public address.
// Stricter than the registries where an address leads on to another one: 6to4, Teredo, NAT64 and
// addresses that only clouds' own hosts answer are refused.
const char* ClosedReason(const IpAddress& address);

}  // namespace caisson::http
