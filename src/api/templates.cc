// SPDX-License-Identifier: Apache-2.0
// /v1/templates: root file systems of the tenant's own
#include "control/templates.h"

#include <fmt/format.h>

#include "api/envelope.h"
#include "api/fields.h"
#include "api/requests.h"
#include "api/routes.h"
#include "api/text.h"
#include "json/writer.h"

namespace caisson::api {
namespace {

constexpr auto kLook = std::chrono::seconds(1);
constexpr auto kHeartbeat = std::chrono::seconds(10);

json::Object ViewOf(const store::Template& row) {
  json::Object view{{"id", row.id},
                    {"name", row.name},
                    {"base", row.base},
                    {"driver", row.driver},
                    {"status", ToText(row.state)},
                    {"ext4_size_bytes", row.bytes},
                    {"created_at", Timestamp(row.created_at)}};
  if (row.built_at) view.Set("built_at", Timestamp(*row.built_at));
  if (!row.failure.empty()) view.Set("failure_reason", ValidUtf8(row.failure));
  return view;
}

Result<void> Create(Call& call) {
  CAISSON_ASSIGN(const Fields fields, Fields::Read(call.exchange, call.context.options.body_bytes));
  control::TemplateRequest request;
  CAISSON_ASSIGN(request.name, fields.RequiredText("name"));
  CAISSON_ASSIGN(request.dockerfile, fields.RequiredText("dockerfile"));
  CAISSON_ASSIGN(const auto base, fields.Text("base"));
  CAISSON_ASSIGN(const auto driver, fields.Text("driver"));
  request.base = base.value_or("");
  request.driver = driver.value_or("");
  CAISSON_ASSIGN(const auto row, call.context.templates.Create(call.caller, request));
  return Succeed(call.exchange, ViewOf(row));
}

Result<void> List(Call& call) {
  CAISSON_ASSIGN(const Page page, ReadPage(call.request()));
  CAISSON_ASSIGN(const auto rows, call.context.templates.List(call.caller));
  json::Array views;
  for (const store::Template& row : rows) views.emplace_back(ViewOf(row));
  return Succeed(call.exchange, CutPage(std::move(views), page));
}

Result<void> Get(Call& call) {
  CAISSON_ASSIGN(const auto row,
                 call.context.templates.Get(call.caller, call.Parameter("template")));
  json::Object view = ViewOf(row);
  const std::string* include = call.request().Query("include");
  if (include != nullptr && *include == "dockerfile") view.Set("dockerfile", row.dockerfile);
  return Succeed(call.exchange, std::move(view));
}

Result<void> Delete(Call& call) {
  CAISSON_TRY(call.context.templates.Delete(call.caller, call.Parameter("template")));
  return Succeed(call.exchange, json::Object{{"ok", true}});
}

Result<std::vector<store::TemplateLine>> LinesOf(Call& call, const std::string& id,
                                                 std::int64_t attempt, std::int64_t after) {
  return call.context.store.Read([&](store::Rows& rows) {
    return rows.TemplateLines(id, attempt == 0 ? std::nullopt : std::optional(attempt), after);
  });
}

Result<std::string> FrameOf(const store::TemplateLine& line) {
  CAISSON_ASSIGN(std::string text, json::Write(json::Object{{"ts", Timestamp(line.at)},
                                                            {"level", line.level},
                                                            {"line", ValidUtf8(line.line)},
                                                            {"attempt", line.attempt}}));
  return text += '\n';
}

Result<void> Follow(Call& call, const std::string& id, std::int64_t attempt) {
  CAISSON_TRY(call.exchange.Begin(
      200, {{"Content-Type", "application/x-ndjson"}, {"Cache-Control", "no-store"}},
      std::nullopt));
  std::int64_t seq = 0;
  auto spoke = std::chrono::steady_clock::now();
  while (!call.exchange.client_gone() && !call.context.sandboxes.draining()) {
    // The state first: what is said before the end is there when the end is.
    const auto row = call.context.templates.Get(call.caller, id);
    CAISSON_ASSIGN(const auto lines, LinesOf(call, id, attempt, seq));
    std::string text;
    for (const store::TemplateLine& line : lines) {
      seq = line.seq;
      CAISSON_ASSIGN(const std::string frame, FrameOf(line));
      text += frame;
    }
    const bool has_ended = !row || row->state == store::TemplateState::kReady ||
                           row->state == store::TemplateState::kFailed;
    if (has_ended) {
      text += fmt::format("{{\"final\":true,\"status\":\"{}\"}}\n",
                          row ? ToText(row->state) : std::string_view("failed"));
    }
    const auto now = std::chrono::steady_clock::now();
    if (text.empty() && now - spoke > kHeartbeat) text = "\n";
    if (!text.empty()) {
      CAISSON_TRY(call.exchange.Write(text));
      spoke = now;
    }
    if (has_ended) return call.exchange.Finish();
    if (lines.empty()) call.context.templates.AwaitChange(kLook);
  }
  return call.exchange.Finish();
}

Result<void> Logs(Call& call) {
  CAISSON_ASSIGN(const auto row,
                 call.context.templates.Get(call.caller, call.Parameter("template")));
  CAISSON_ASSIGN(const std::int64_t attempt,
                 ReadQueryNumber(call.request(), "attempt", 0, 1'000'000));
  const std::string* follow = call.request().Query("follow");
  if (follow != nullptr && *follow == "true") return Follow(call, row.id, attempt);
  CAISSON_ASSIGN(const auto lines, LinesOf(call, row.id, attempt, 0));
  std::string text;
  for (const store::TemplateLine& line : lines) text += ValidUtf8(line.line) + "\n";
  return call.exchange.Respond(200, {{"Content-Type", "text/plain; charset=utf-8"}},
                               std::move(text));
}

}  // namespace

void AddTemplates(Routes& routes) {
  routes.Add("POST /v1/templates", Access::kTenant, Pace::kBlocking, Create);
  routes.Add("GET /v1/templates", Access::kTenant, Pace::kBlocking, List);
  routes.Add("GET /v1/templates/{template}", Access::kTenant, Pace::kBlocking, Get);
  routes.Add("DELETE /v1/templates/{template}", Access::kTenant, Pace::kBlocking, Delete);
  routes.Add("GET /v1/templates/{template}/logs", Access::kTenant, Pace::kBlocking, Logs);
}

}  // namespace caisson::api
