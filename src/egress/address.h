// SPDX-License-Identifier: Apache-2.0
// IPv4 addresses as numbers in host order, and what is never open to a machine. No input or output.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::egress {

struct Range {
  std::uint32_t first = 0;
  std::uint32_t last = 0;  // inclusive
  auto operator<=>(const Range&) const = default;
};

// Four decimal numbers without leading zeros; nothing else that some programs take for an address.
std::optional<std::uint32_t> ParseAddress(std::string_view text);
std::string FormatAddress(std::uint32_t address);
// "10.0.0.0/8" where the range is a network, else "10.0.0.1-10.0.0.9"; an address alone without
// /32.
std::string FormatRange(const Range& range);
// `prefix` from 0 to 32; bits behind it are dropped.
Range NetworkOf(std::uint32_t address, int prefix);

struct ClosedRange {
  Range range;
  const char* why;  // "private addresses (RFC 1918)"
};
// What no policy opens: "this" network, private, shared and loopback addresses, link-local (the
// metadata services of clouds among it), protocol assignments, benchmarks, multicast, reserved, and
// the address by which one cloud's hosts serve their guests. By address, without overlaps.
std::span<const ClosedRange> ClosedRanges();

// The parts of `range` that are not closed, by address.
std::vector<Range> OpenParts(const Range& range);

// Sorted, without overlaps, neighbours joined.
std::vector<Range> Merged(std::vector<Range> ranges);

}  // namespace caisson::egress
