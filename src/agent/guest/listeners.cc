// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/listeners.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>

#include "os/fd.h"

namespace caisson::agent::guest {
namespace {

constexpr std::size_t kMostRead = 1u << 20;  // listeners stand first
constexpr std::string_view kListens = "0A";

template <typename Number>
bool ReadHex(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return error == std::errc() && end == text.data() + text.size();
}

std::string_view NextWord(std::string_view& line) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t end = std::min(line.find(' ', begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

// Of a line "N: ADDRESS:PORT ADDRESS:PORT STATE …": the address in hex, when it listens there.
std::optional<std::string_view> ListenerOf(std::string_view line, std::uint16_t port) {
  NextWord(line);
  const std::string_view local = NextWord(line);
  NextWord(line);
  const std::size_t colon = local.find(':');
  std::uint16_t number = 0;
  if (NextWord(line) != kListens || colon == std::string_view::npos ||
      !ReadHex(local.substr(colon + 1), number) || number != port) {
    return std::nullopt;
  }
  return local.substr(0, colon);
}

void AddV4(std::string_view hex, std::uint16_t port, std::vector<SocketAddress>& found) {
  std::uint32_t address = 0;  // as it lies in memory
  if (hex.size() != 8 || !ReadHex(hex, address)) return;
  if ((ntohl(address) >> 24) == 127) return;
  found.push_back(SocketAddress::V4(address == 0 ? htonl(INADDR_LOOPBACK) : address, port));
}

void AddV6(std::string_view hex, std::uint16_t port, std::vector<SocketAddress>& found) {
  std::array<std::uint32_t, 4> words{};
  if (hex.size() != 32) return;
  for (int i = 0; i < 4; ++i) {
    if (!ReadHex(hex.substr(8 * static_cast<std::size_t>(i), 8), words[i])) return;
  }
  in6_addr address{};
  std::memcpy(&address, words.data(), sizeof address);
  if (IN6_IS_ADDR_LOOPBACK(&address)) return;
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    if (address.s6_addr[12] == 127) return;
    return found.push_back(SocketAddress::V4(words[3], port));
  }
  if (!IN6_IS_ADDR_UNSPECIFIED(&address)) return found.push_back(SocketAddress::V6(address, port));
  found.push_back(SocketAddress::V6(in6addr_loopback, port));
  found.push_back(SocketAddress::V4(htonl(INADDR_LOOPBACK), port));  // it may take both
}

template <typename Add>
void ForEachListener(std::string_view table, std::uint16_t port, Add add) {
  while (!table.empty()) {
    const std::size_t end = std::min(table.find('\n'), table.size());
    if (const auto hex = ListenerOf(table.substr(0, end), port)) add(*hex);
    table.remove_prefix(std::min(end + 1, table.size()));
  }
}

}  // namespace

SocketAddress SocketAddress::V4(std::uint32_t network_order, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = network_order;
  SocketAddress result{.storage = {}, .size = sizeof address};
  std::memcpy(&result.storage, &address, sizeof address);
  return result;
}

SocketAddress SocketAddress::V6(const in6_addr& of, std::uint16_t port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  address.sin6_addr = of;
  SocketAddress result{.storage = {}, .size = sizeof address};
  std::memcpy(&result.storage, &address, sizeof address);
  return result;
}

std::vector<SocketAddress> PublicListeners(std::string_view tcp, std::string_view tcp6,
                                           std::uint16_t port) {
  std::vector<SocketAddress> found;
  ForEachListener(tcp, port, [&](std::string_view hex) { AddV4(hex, port, found); });
  ForEachListener(tcp6, port, [&](std::string_view hex) { AddV6(hex, port, found); });
  return found;
}

std::vector<SocketAddress> Candidates(const DialRequest& request) {
  if (request.to == DialTo::kLoopback) {
    return {SocketAddress::V4(htonl(INADDR_LOOPBACK), request.port),
            SocketAddress::V6(in6addr_loopback, request.port)};
  }
  const auto tcp = os::ReadSmallFile("/proc/net/tcp", kMostRead);
  const auto tcp6 = os::ReadSmallFile("/proc/net/tcp6", kMostRead);
  return PublicListeners(tcp.value_or(""), tcp6.value_or(""), request.port);
}

}  // namespace caisson::agent::guest
