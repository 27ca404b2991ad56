// SPDX-License-Identifier: Apache-2.0
// GET …/metrics and /v1/metrics (what machines use), /metrics (Prometheus), /v1/audit
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>

#include "api/envelope.h"
#include "api/requests.h"
#include "api/routes.h"
#include "api/text.h"
#include "errors/control.h"

namespace caisson::api {
namespace {

// Long enough for a rate of processor time, short enough for a request.
constexpr auto kSample = std::chrono::milliseconds(100);

struct Sample {
  std::chrono::steady_clock::time_point at;
  machine::Stats stats;
};

Result<Sample> Take(Call& call, const store::Sandbox& sandbox) {
  CAISSON_ASSIGN(const auto stats, call.context.sandboxes.ReadStats(sandbox));
  return Sample{.at = std::chrono::steady_clock::now(), .stats = stats};
}

json::Value ViewOf(const store::Sandbox& sandbox, const Sample& first, const Sample& second) {
  const machine::Stats& stats = second.stats;
  const double seconds = std::chrono::duration<double>(second.at - first.at).count();
  const std::uint64_t used = stats.cpu_nanoseconds >= first.stats.cpu_nanoseconds
                                 ? stats.cpu_nanoseconds - first.stats.cpu_nanoseconds
                                 : 0;
  const double cores = seconds > 0 ? static_cast<double>(used) / 1e9 / seconds : 0;
  const auto limit = static_cast<double>(stats.memory_limit_bytes);
  return json::Object{
      {"sandbox_id", sandbox.id},
      {"memory_bytes", stats.memory_bytes},
      {"memory_limit_bytes", stats.memory_limit_bytes},
      {"memory_pct", limit > 0 ? 100.0 * static_cast<double>(stats.memory_bytes) / limit : 0.0},
      {"cpu_cores_used", cores},
      {"cpu_cores_allocated", sandbox.cpus},
      {"cpu_pct", sandbox.cpus > 0 ? 100.0 * cores / sandbox.cpus : 0.0},
      {"cpu_seconds", static_cast<double>(stats.cpu_nanoseconds) / 1e9},
      {"pids", stats.pids},
      {"disk_used_bytes", stats.disk_used_bytes},
      {"disk_bytes", stats.disk_bytes},
      {"network_sent_bytes", stats.network_sent_bytes},
      {"network_received_bytes", stats.network_received_bytes},
      {"as_of", Timestamp(NowMilliseconds())}};
}

Result<void> OfOne(Call& call) {
  CAISSON_ASSIGN(const auto sandbox, call.context.sandboxes.Get(call.caller, call.id()));
  constexpr store::SandboxState kMeasured[] = {
      store::SandboxState::kRunning, store::SandboxState::kPausing, store::SandboxState::kPaused,
      store::SandboxState::kResuming, store::SandboxState::kError};
  if (std::ranges::find(kMeasured, sandbox.state) == std::end(kMeasured)) {
    return Fail(errors::kControlState, fmt::format("the sandbox is {}: there is nothing to measure",
                                                   ToText(sandbox.state)));
  }
  CAISSON_ASSIGN(const Sample first, Take(call, sandbox));
  std::this_thread::sleep_for(kSample);
  CAISSON_ASSIGN(const Sample second, Take(call, sandbox));
  return Succeed(call.exchange, ViewOf(sandbox, first, second));
}

Result<void> OfAll(Call& call) {
  CAISSON_ASSIGN(const Page page, ReadPage(call.request()));
  std::int64_t total = 0;
  CAISSON_ASSIGN(const auto rows,
                 call.context.sandboxes.List(
                     call.caller,
                     {.states = {store::SandboxState::kRunning, store::SandboxState::kError},
                      .limit = page.limit,
                      .offset = page.offset},
                     total));
  std::vector<Result<Sample>> firsts;
  firsts.reserve(rows.size());
  for (const store::Sandbox& row : rows) firsts.push_back(Take(call, row));
  std::this_thread::sleep_for(kSample);
  json::Array views;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto second = Take(call, rows[i]);
    // One that ends meanwhile is no failure of the others.
    if (firsts[i] && second) views.push_back(ViewOf(rows[i], *firsts[i], *second));
  }
  return Succeed(call.exchange, PageOf(std::move(views), total, page));
}

bool IsLocal(const http::Request& request) {
  // What comes through a proxy comes from anywhere.
  if (request.headers.Find("X-Forwarded-For") != nullptr) return false;
  return request.peer == "unix" || request.peer.starts_with("127.") ||
         request.peer.starts_with("[::1]");
}

Result<void> Prometheus(Call& call) {
  if (!IsLocal(call.request())) {
    CAISSON_TRY(Identify(call.context, call.request(), Access::kAdmin));
  }
  std::map<std::string, double> by_state;
  for (int i = 0; i <= static_cast<int>(store::SandboxState::kFailed); ++i) {
    const auto state = static_cast<store::SandboxState>(i);
    CAISSON_ASSIGN(const std::int64_t count, call.context.store.Read([&](store::Rows& rows) {
      return rows.CountSandboxes({.states = {state}, .with_pooled = true});
    }));
    by_state[fmt::format("state=\"{}\"", ToText(state))] = static_cast<double>(count);
  }
  const control::HostNow host = call.context.sandboxes.options().host_now();
  std::string text = call.context.metrics.Text();
  text += GaugeText("caisson_sandboxes", by_state);
  text += GaugeText("caisson_host_free_memory_bytes",
                    {{"", static_cast<double>(host.free_memory_mib) * 1048576}});
  text += GaugeText("caisson_host_free_disk_bytes",
                    {{"", static_cast<double>(host.free_disk_mib) * 1048576}});
  text +=
      GaugeText("caisson_info", {{fmt::format("version=\"{}\"", call.context.options.version), 1}});
  return call.exchange.Respond(200, {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
                               std::move(text));
}

Result<void> Audit(Call& call) {
  CAISSON_ASSIGN(const std::int64_t after,
                 ReadQueryNumber(call.request(), "after", 0, std::int64_t{1} << 62));
  CAISSON_ASSIGN(const Page page, ReadPage(call.request()));
  CAISSON_ASSIGN(const auto entries, call.context.store.Read([&](store::Rows& rows) {
    return rows.AuditAfter(after, page.limit);
  }));
  json::Array views;
  for (const store::AuditEntry& entry : entries) {
    views.emplace_back(json::Object{{"seq", entry.seq},
                                    {"at", Timestamp(entry.at)},
                                    {"tenant", entry.tenant},
                                    {"actor", entry.actor},
                                    {"peer", entry.peer},
                                    {"request_id", entry.request_id},
                                    {"action", entry.action},
                                    {"target", entry.target},
                                    {"status", entry.status}});
  }
  return Succeed(call.exchange, json::Object{{"data", std::move(views)}});
}

}  // namespace

void AddMeasurements(Routes& routes) {
  routes.Add("GET /v1/sandboxes/{id}/metrics", Access::kSandbox, Pace::kBlocking, OfOne);
  routes.Add("GET /v1/metrics", Access::kTenant, Pace::kBlocking, OfAll);
  routes.Add("GET /metrics", Access::kOpen, Pace::kBlocking, Prometheus);
  routes.Add("GET /v1/audit", Access::kAdmin, Pace::kBlocking, Audit);
}

}  // namespace caisson::api
