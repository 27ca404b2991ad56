// SPDX-License-Identifier: Apache-2.0
// Forwards one exchange to a server of a guest behind a connected stream socket, and raw streams to
// a socket. What comes from the guest is hostile: its head is parsed as strictly as a client's, its
// sizes are limited, and nothing of it but the answer reaches anybody.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "http/exchange.h"
#include "os/fd.h"

namespace caisson::http {

struct ProxyOptions {
  std::uint16_t port = 80;                // Host becomes "localhost:<port>"
  std::string target;                     // request target for the guest; empty: the exchange's own
  std::vector<std::string> drop_headers;  // beyond the hop-by-hop ones, Authorization and X-Api-Key
  std::chrono::milliseconds head_timeout{60'000};  // until the guest's answer begins
};

// HTTP/1.1 with Connection: close to `upstream`; bodies stream both ways, server-sent events go out
// as they come, an upgrade (WebSocket) becomes raw bytes both ways. Returns when the answer is
// over. Fails with http.upstream (502) or http.upstream_timed_out (504) before an answer was begun,
// else with what broke.
Result<void> ProxyTo(Exchange& exchange, os::UniqueFd upstream, const ProxyOptions& options);

// Copies both ways until both are at their end, keeping half-closes, or one of them breaks. Takes a
// second thread while it runs.
Result<void> Relay(Stream& client, os::UniqueFd upstream);

}  // namespace caisson::http
