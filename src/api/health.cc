// SPDX-License-Identifier: Apache-2.0
// GET /healthz, /readyz, /v1/whoami
#include "api/envelope.h"
#include "api/routes.h"
#include "errors/control.h"
#include "json/writer.h"

namespace caisson::api {
namespace {

Result<void> Health(Call& call) { return Succeed(call.exchange, json::Object{{"up", true}}); }

// 503 with the same data, which clients read there too.
Result<void> NotReady(Call& call, const std::string& reason) {
  CAISSON_ASSIGN(
      std::string body,
      json::Write(json::Object{{"status", "fail"},
                               {"data", json::Object{{"ready", false}, {"reason", reason}}}}));
  return call.exchange.Respond(503, {{"Content-Type", "application/json"}}, std::move(body));
}

Result<void> Ready(Call& call) {
  if (call.context.sandboxes.draining()) return NotReady(call, "the service is shutting down");
  auto works = call.context.store.Read([](store::Rows& rows) { return rows.NewestEvent(); });
  if (!works) return NotReady(call, works.error().message);
  const auto last = call.context.sandboxes.SinceTended();
  // Several rounds without an end: machines cannot be looked after.
  constexpr std::int64_t kLongest = 60'000;
  if (last > kLongest) return NotReady(call, "sandboxes are not looked after");
  return Succeed(call.exchange, json::Object{{"ready", true}, {"scheduler_last_ok_ms_ago", last}});
}

Result<void> WhoAmI(Call& call) {
  auto count = [&](std::vector<store::SandboxState> states) {
    return call.context.store.Read([&](store::Rows& rows) {
      return rows.CountSandboxes({.tenant = call.caller.tenant, .states = std::move(states)});
    });
  };
  CAISSON_ASSIGN(const std::int64_t running, count({store::SandboxState::kRunning}));
  CAISSON_ASSIGN(const std::int64_t paused, count({store::SandboxState::kPaused}));
  CAISSON_ASSIGN(const std::int64_t total, count({}));
  return Succeed(call.exchange,
                 json::Object{{"user_id", call.caller.tenant},
                              {"is_admin", call.caller.is_admin},
                              {"stats", json::Object{{"running", running},
                                                     {"paused", paused},
                                                     {"other", total - running - paused},
                                                     {"total", total}}}});
}

}  // namespace

void AddHealth(Routes& routes) {
  routes.Add("GET /healthz", Access::kOpen, Pace::kShort, Health);
  routes.Add("GET /readyz", Access::kOpen, Pace::kShort, Ready);
  routes.Add("GET /v1/whoami", Access::kTenant, Pace::kShort, WhoAmI);
}

}  // namespace caisson::api
