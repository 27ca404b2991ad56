// SPDX-License-Identifier: Apache-2.0
// DiscordWebhookNode: a message to a channel, by the channel's own URL.
#include "json/writer.h"
#include "nodes/exchange.h"
#include "nodes/families.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

enum : std::size_t { kWebhookUrl, kContent, kUsername, kAvatarUrl, kEmbeds, kTts, kTimeout };
constexpr Field kFields[] = {
    {.name = "webhook_url", .kind = FieldKind::kString, .required = true},
    {.name = "content", .kind = FieldKind::kString, .nullable = true},
    {.name = "username", .kind = FieldKind::kString, .nullable = true},
    {.name = "avatar_url", .kind = FieldKind::kString, .nullable = true},
    {.name = "embeds", .kind = FieldKind::kObjectList, .nullable = true},
    {.name = "tts", .kind = FieldKind::kBool, .default_json = "false"},
    {.name = "timeout", .kind = FieldKind::kFloat, .nullable = true, .default_json = "10.0"},
};

Result<json::Value> RunDiscord(const Visit& visit) {
  if (!visit.fields[kWebhookUrl].is_string()) {
    return NodeFailed("webhook_url must be a string; a template yielded another type");
  }
  json::Object message{{"tts", visit.fields[kTts]}};
  for (const std::size_t field : {kContent, kUsername, kAvatarUrl, kEmbeds}) {
    if (!visit.fields[field].is_null()) message.Set(kFields[field].name, visit.fields[field]);
  }
  auto text = json::Write(message);
  if (!text) return NodeFailed("the message cannot be written as JSON: " + text.error().message);
  http::OutboundRequest request{.method = "POST",
                                .url = visit.fields[kWebhookUrl].as_string(),
                                .headers = {{"Content-Type", "application/json"}},
                                .body = *std::move(text),
                                .follow_redirects = false};
  CAISSON_ASSIGN(request.times, TimesOf(visit.fields[kTimeout]));
  CAISSON_ASSIGN(const http::OutboundResponse response, Exchange(visit, request));
  CAISSON_TRY(RaiseForStatus(response));
  return json::Object{{"status_code", response.status}, {"reason", response.reason}};
}

}  // namespace

extern constexpr NodeType kDiscordWebhookNode{"DiscordWebhookNode", kFields, RunDiscord, nullptr,
                                              Need::kNetwork};

}  // namespace caisson::nodes
