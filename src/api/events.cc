// SPDX-License-Identifier: Apache-2.0
// GET /v1/events: what happens to the tenant's sandboxes and templates, as server-sent events
#include <fmt/format.h>

#include <charconv>

#include "api/requests.h"
#include "api/routes.h"
#include "api/text.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::api {
namespace {

constexpr std::int64_t kBatch = 256;
constexpr std::int64_t kMostSequence = std::int64_t{1} << 62;
constexpr auto kHeartbeat = std::chrono::seconds(15);
// Also finds what another process has written.
constexpr auto kLook = std::chrono::seconds(1);

// Where to begin: ?after=, Last-Event-ID, else now.
Result<std::int64_t> StartOf(Call& call) {
  CAISSON_ASSIGN(const std::int64_t after,
                 ReadQueryNumber(call.request(), "after", -1, kMostSequence));
  if (after >= 0) return after;
  if (const std::string* last = call.request().headers.Find("Last-Event-ID")) {
    std::int64_t seq = 0;
    const auto [end, problem] = std::from_chars(last->data(), last->data() + last->size(), seq);
    if (problem == std::errc() && seq >= 0) return seq;
  }
  return call.context.store.Read([](store::Rows& rows) { return rows.NewestEvent(); });
}

std::string FrameOf(const store::Event& event) {
  json::Object data{{"seq", event.seq}, {"at", Timestamp(event.at)}, {"type", event.type}};
  if (!event.sandbox.empty()) data.Set("sandbox_id", event.sandbox);
  if (auto more = json::Read(event.data); more && more->is_object()) data.Set("data", *more);
  return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", event.seq, event.type,
                     json::Write(json::Value(std::move(data))).value_or("{}"));
}

Result<void> Stream(Call& call) {
  CAISSON_ASSIGN(std::int64_t seq, StartOf(call));
  const std::string* only = call.request().Query("sandbox_id");
  CAISSON_TRY(call.exchange.Begin(200,
                                  {{"Content-Type", "text/event-stream"},
                                   {"Cache-Control", "no-store"},
                                   {"X-Accel-Buffering", "no"}},
                                  std::nullopt));
  CAISSON_TRY(call.exchange.Write(": events\n\n"));
  auto spoke = std::chrono::steady_clock::now();
  while (!call.exchange.client_gone() && !call.context.sandboxes.draining()) {
    CAISSON_ASSIGN(const auto events, call.context.store.Read([&](store::Rows& rows) {
      return rows.EventsAfter(call.caller.tenant, seq, kBatch);
    }));
    std::string text;
    for (const store::Event& event : events) {
      seq = event.seq;
      if (only == nullptr || *only == event.sandbox) text += FrameOf(event);
    }
    const auto now = std::chrono::steady_clock::now();
    if (text.empty() && now - spoke >= kHeartbeat) text = ": quiet\n\n";
    if (!text.empty()) {
      CAISSON_TRY(call.exchange.Write(text));
      spoke = now;
    }
    if (events.empty()) call.context.sandboxes.AwaitEvents(seq, kLook);
  }
  return call.exchange.Finish();
}

}  // namespace

void AddEvents(Routes& routes) {
  routes.Add("GET /v1/events", Access::kTenant, Pace::kBlocking, Stream);
}

}  // namespace caisson::api
