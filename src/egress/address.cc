// SPDX-License-Identifier: Apache-2.0
#include "egress/address.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace caisson::egress {
namespace {

constexpr std::uint32_t Address(unsigned a, unsigned b, unsigned c, unsigned d) {
  return a << 24 | b << 16 | c << 8 | d;
}
constexpr std::uint32_t HostBits(int prefix) {
  return prefix == 0 ? 0xffffffff : (1u << (32 - prefix)) - 1;
}
constexpr Range Network(std::uint32_t address, int prefix) {
  return {address & ~HostBits(prefix), address | HostBits(prefix)};
}

constexpr std::array kClosed = {
    ClosedRange{Network(Address(0, 0, 0, 0), 8), "\"this\" network (RFC 791)"},
    ClosedRange{Network(Address(10, 0, 0, 0), 8), "private addresses (RFC 1918)"},
    ClosedRange{Network(Address(100, 64, 0, 0), 10), "shared addresses of providers (RFC 6598)"},
    ClosedRange{Network(Address(127, 0, 0, 0), 8), "loopback"},
    ClosedRange{Network(Address(168, 63, 129, 16), 32), "a cloud's service to its guests"},
    ClosedRange{Network(Address(169, 254, 0, 0), 16), "link-local, metadata services among it"},
    ClosedRange{Network(Address(172, 16, 0, 0), 12), "private addresses (RFC 1918)"},
    ClosedRange{Network(Address(192, 0, 0, 0), 24), "protocol assignments (RFC 6890)"},
    ClosedRange{Network(Address(192, 168, 0, 0), 16), "private addresses (RFC 1918)"},
    ClosedRange{Network(Address(198, 18, 0, 0), 15), "benchmarks (RFC 2544)"},
    ClosedRange{Network(Address(224, 0, 0, 0), 4), "multicast"},
    ClosedRange{Network(Address(240, 0, 0, 0), 4), "reserved addresses (RFC 1112), broadcast"},
};

}  // namespace

std::optional<std::uint32_t> ParseAddress(std::string_view text) {
  std::uint32_t address = 0;
  for (int part = 0; part < 4; ++part) {
    if (part > 0) {
      if (!text.starts_with('.')) return std::nullopt;
      text.remove_prefix(1);
    }
    std::uint32_t number = 0;
    std::size_t digits = 0;
    for (; digits < text.size() && digits < 3 && text[digits] >= '0' && text[digits] <= '9';
         ++digits) {
      number = number * 10 + static_cast<std::uint32_t>(text[digits] - '0');
    }
    if (digits == 0 || number > 255 || (digits > 1 && text[0] == '0')) return std::nullopt;
    text.remove_prefix(digits);
    address = address << 8 | number;
  }
  if (!text.empty()) return std::nullopt;
  return address;
}

std::string FormatAddress(std::uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255,
                     address & 255);
}

std::string FormatRange(const Range& range) {
  if (range.first == range.last) return FormatAddress(range.first);
  const std::uint32_t differing = range.first ^ range.last;
  const int prefix = std::countl_zero(differing);
  if (NetworkOf(range.first, prefix) == range) {
    return fmt::format("{}/{}", FormatAddress(range.first), prefix);
  }
  return FormatAddress(range.first) + "-" + FormatAddress(range.last);
}

Range NetworkOf(std::uint32_t address, int prefix) { return Network(address, prefix); }

std::span<const ClosedRange> ClosedRanges() { return kClosed; }

std::vector<Range> OpenParts(const Range& range) {
  std::vector<Range> parts;
  std::uint64_t next = range.first;  // beyond 32 bits: nothing is left
  for (const ClosedRange& closed : kClosed) {
    if (closed.range.last < next) continue;
    if (closed.range.first > range.last) break;
    if (closed.range.first > next) {
      parts.push_back({static_cast<std::uint32_t>(next), closed.range.first - 1});
    }
    next = std::uint64_t{closed.range.last} + 1;
  }
  if (next <= range.last) parts.push_back({static_cast<std::uint32_t>(next), range.last});
  return parts;
}

std::vector<Range> Merged(std::vector<Range> ranges) {
  std::ranges::sort(ranges);
  std::vector<Range> merged;
  for (const Range& range : ranges) {
    if (!merged.empty() && range.first <= std::uint64_t{merged.back().last} + 1) {
      merged.back().last = std::max(merged.back().last, range.last);
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

}  // namespace caisson::egress
