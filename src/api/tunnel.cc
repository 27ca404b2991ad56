// SPDX-License-Identifier: Apache-2.0
// POST …/tunnel/{port}: raw bytes to a port on the machine's loopback, after an upgrade
#include "agent/client.h"
#include "api/requests.h"
#include "api/routes.h"
#include "http/proxy.h"

namespace caisson::api {
namespace {

Result<void> Tunnel(Call& call) {
  CAISSON_ASSIGN(const std::uint16_t port, ParsePort(call.Parameter("port")));
  CAISSON_ASSIGN(const control::InUse held, call.context.sandboxes.Hold(call.caller, call.id()));
  CAISSON_ASSIGN(os::UniqueFd connection, call.context.sandboxes.Connect(held.sandbox));
  CAISSON_ASSIGN(
      os::UniqueFd upstream,
      agent::Dial(std::move(connection), {.port = port, .to = agent::DialTo::kLoopback}));
  CAISSON_ASSIGN(const auto client, call.exchange.Upgrade({{"Upgrade", "tcp-tunnel"}}));
  return http::Relay(*client, std::move(upstream));
}

}  // namespace

void AddTunnel(Routes& routes) {
  routes.Add("POST /v1/sandboxes/{id}/tunnel/{port}", Access::kSandbox, Pace::kBlocking, Tunnel);
}

}  // namespace caisson::api
