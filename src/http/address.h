// SPDX-License-Identifier: Apache-2.0
// Listening sockets, and who is at the other end of one.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "os/fd.h"

namespace caisson::http {

inline constexpr std::string_view kUnixScheme = "unix:";

struct Listening {
  os::UniqueFd socket;
  std::uint16_t port = 0;  // 0 for Unix sockets
  std::string unix_path;   // to be removed in the end; empty for TCP
};

// "127.0.0.1:8080", "[::1]:0", "localhost:8080", "unix:/path". A Unix socket that nobody answers on
// is replaced; anything else at its path is left alone. http.listen.
Result<Listening> Listen(const std::string& address, unsigned unix_mode);

// "192.0.2.1:4711", "[2001:db8::1]:4711", "unix".
std::string PeerText(const sockaddr_storage& peer);

}  // namespace caisson::http
