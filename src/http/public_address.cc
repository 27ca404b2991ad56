// SPDX-License-Identifier: Apache-2.0
#include "http/public_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace caisson::http {
namespace {

using Bytes = std::array<std::uint8_t, 16>;

constexpr Bytes kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};

struct Block {
  Bytes address;
  int prefix;
  const char* why;
};

constexpr Block V4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d, int prefix,
                   const char* why) {
  Block block{kMapped, 96 + prefix, why};
  block.address[12] = a;
  block.address[13] = b;
  block.address[14] = c;
  block.address[15] = d;
  return block;
}

constexpr Block V6(std::uint16_t a, std::uint16_t b, int prefix, const char* why) {
  return {{static_cast<std::uint8_t>(a >> 8), static_cast<std::uint8_t>(a),
           static_cast<std::uint8_t>(b >> 8), static_cast<std::uint8_t>(b)},
          prefix,
          why};
}

constexpr Block kClosed4[] = {
    V4(0, 0, 0, 0, 32, "an unspecified address"),
    V4(0, 0, 0, 0, 8, "an address of \"this\" network"),
    V4(10, 0, 0, 0, 8, "a private address"),
    V4(100, 64, 0, 0, 10, "a shared address of providers"),
    V4(127, 0, 0, 0, 8, "a loopback address"),
    V4(168, 63, 129, 16, 32, "a cloud's service to its own hosts"),
    V4(169, 254, 0, 0, 16, "a link-local address"),
    V4(172, 16, 0, 0, 12, "a private address"),
    V4(192, 0, 0, 0, 24, "an address for protocol assignments"),
    V4(192, 0, 2, 0, 24, "a documentation address"),
    V4(192, 88, 99, 0, 24, "a 6to4 relay"),
    V4(192, 168, 0, 0, 16, "a private address"),
    V4(198, 18, 0, 0, 15, "a benchmark address"),
    V4(198, 51, 100, 0, 24, "a documentation address"),
    V4(203, 0, 113, 0, 24, "a documentation address"),
    V4(224, 0, 0, 0, 4, "a multicast address"),
    V4(240, 0, 0, 0, 4, "a reserved address"),
};

// Within the global unicast addresses, 2000::/3.
constexpr Block kClosed6[] = {
    V6(0x2001, 0, 32, "a Teredo address"),
    V6(0x2001, 0, 23, "an address for protocol assignments"),
    V6(0x2001, 0xdb8, 32, "a documentation address"),
    V6(0x2002, 0, 16, "a 6to4 address"),
    V6(0x3fff, 0, 20, "a documentation address"),
};
// Outside of them nothing is public; these have names.
constexpr Block kNamed6[] = {
    {{}, 128, "an unspecified address"},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, "a loopback address"},
    V6(0x64, 0xff9b, 32, "a NAT64 address"),
    V6(0xfc00, 0, 7, "a unique local address"),
    V6(0xfe80, 0, 10, "a link-local address"),
    V6(0xff00, 0, 8, "a multicast address"),
};

bool Holds(const Block& block, const Bytes& bytes) {
  const int whole = block.prefix / 8;
  if (std::memcmp(block.address.data(), bytes.data(), static_cast<std::size_t>(whole)) != 0) {
    return false;
  }
  const int rest = block.prefix % 8;
  if (rest == 0) return true;
  const auto at = static_cast<std::size_t>(whole);
  return ((block.address[at] ^ bytes[at]) >> (8 - rest)) == 0;
}

const char* FindIn(std::span<const Block> blocks, const Bytes& bytes) {
  const auto found =
      std::ranges::find_if(blocks, [&](const Block& block) { return Holds(block, bytes); });
  return found != blocks.end() ? found->why : nullptr;
}

}  // namespace

bool IpAddress::is_v4() const {
  return std::equal(bytes.begin(), bytes.begin() + 12, kMapped.begin());
}

std::optional<IpAddress> ParseIp(std::string_view text) {
  const std::string terminated(text);
  if (terminated.find('\0') != std::string::npos) return std::nullopt;
  IpAddress address;
  if (inet_pton(AF_INET6, terminated.c_str(), address.bytes.data()) == 1) return address;
  address.bytes = kMapped;
  if (inet_pton(AF_INET, terminated.c_str(), address.bytes.data() + 12) == 1) return address;
  return std::nullopt;
}

std::string FormatIp(const IpAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.is_v4()) {
    inet_ntop(AF_INET, address.bytes.data() + 12, text, sizeof text);
  } else {
    inet_ntop(AF_INET6, address.bytes.data(), text, sizeof text);
  }
  return text;
}

const char* ClosedReason(const IpAddress& address) {
  if (address.is_v4()) return FindIn(kClosed4, address.bytes);
  if ((address.bytes[0] & 0xe0) == 0x20) return FindIn(kClosed6, address.bytes);
  const char* named = FindIn(kNamed6, address.bytes);
  return named != nullptr ? named : "a reserved address";
}

}  // namespace caisson::http
