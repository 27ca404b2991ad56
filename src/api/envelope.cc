// SPDX-License-Identifier: Apache-2.0
#include "api/envelope.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/text.h"
#include "base/error_catalogue.h"
#include "control/request_check.h"
#include "errors/api.h"
#include "errors/control.h"
#include "errors/http.h"
#include "json/writer.h"

namespace caisson::api {
namespace {

constexpr std::int64_t kMostPerPage = 500;

http::Headers JsonHeaders(const http::Request* request) {
  http::Headers headers{{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}};
  if (request != nullptr && !request->id.empty()) headers.Add("X-Fc-Request-Id", request->id);
  return headers;
}

bool NamesField(const Status& status) {
  return !status.details.empty() &&
         (status.code.name.starts_with("api.") || status.code.name.starts_with("control.") ||
          status.code.name.starts_with("egress.") || status.code.name.starts_with("dockerfile."));
}

// Also with a status that clients retry: nothing was done.
bool MayComeAgain(int http_status) { return http_status == 429 || http_status == 503; }

Result<std::int64_t> ReadNumber(const http::Request& request, const char* name,
                                std::int64_t standard) {
  const std::string* text = request.Query(name);
  if (text == nullptr || text->empty()) return standard;
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (problem != std::errc() || end != text->data() + text->size() || value < 0) {
    return control::FailAt(name, errors::kApiField, "must be a number, 0 or more");
  }
  return value;
}

}  // namespace

Result<void> Succeed(http::Exchange& exchange, json::Value data) {
  CAISSON_ASSIGN(std::string text,
                 json::Write(json::Object{{"status", "success"}, {"data", std::move(data)}}));
  return exchange.Respond(200, JsonHeaders(&exchange.request()), std::move(text));
}

http::Answer AnswerOf(const Status& status, const http::Request* request) {
  const ErrorEntry& entry = FindError(status.code);
  const int code = entry.http_status;
  const std::string message = ValidUtf8(status.message);
  json::Object body{{"status", code < 500 ? "fail" : "error"}};
  if (code >= 500) {
    body.Set("message", message);
    body.Set("code", code);
    body.Set("error_code", entry.code);
  } else if (NamesField(status)) {
    body.Set("data", json::Object{{ValidUtf8(status.details), message}, {"code", entry.code}});
  } else {
    body.Set("data", message);
  }
  http::Answer answer{.status = code, .headers = JsonHeaders(request), .body = {}};
  answer.headers.Add("X-Error-Code", entry.code);
  if (MayComeAgain(code)) answer.headers.Add("Retry-After", "1");
  if (status.code == errors::kHttpMethodNotAllowed) answer.headers.Add("Allow", status.details);
  answer.body = json::Write(json::Value(std::move(body))).value_or("{\"status\":\"error\"}");
  return answer;
}

Result<Page> ReadPage(const http::Request& request) {
  Page page;
  CAISSON_ASSIGN(page.limit, ReadNumber(request, "limit", page.limit));
  CAISSON_ASSIGN(page.offset, ReadNumber(request, "offset", page.offset));
  page.limit = std::clamp<std::int64_t>(page.limit, 1, kMostPerPage);
  return page;
}

json::Value PageOf(json::Array items, std::int64_t total, const Page& page) {
  const auto count = static_cast<std::int64_t>(items.size());
  return json::Object{
      {"data", std::move(items)},
      {"pagination",
       json::Object{
           {"total", total}, {"limit", page.limit}, {"offset", page.offset}, {"count", count}}}};
}

json::Value CutPage(json::Array all, const Page& page) {
  const auto total = static_cast<std::int64_t>(all.size());
  const auto first = std::min(page.offset, total);
  const auto last = std::min(first + page.limit, total);
  return PageOf(json::Array(all.begin() + first, all.begin() + last), total, page);
}

}  // namespace caisson::api
