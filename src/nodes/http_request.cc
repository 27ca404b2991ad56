// SPDX-License-Identifier: Apache-2.0
// HttpRequestNode.
#include <chrono>

#include "errors/outbound.h"
#include "json/reader.h"
#include "json/truth.h"
#include "json/writer.h"
#include "nodes/exchange.h"
#include "nodes/families.h"
#include "nodes/python_text.h"
#include "nodes/text_decoding.h"

namespace caisson::nodes {
namespace {

constexpr std::string_view kMethods[] = {"GET",    "POST", "PUT",    "PATCH",
                                         "DELETE", "HEAD", "OPTIONS"};

enum : std::size_t {
  kMethod,
  kUrl,
  kParams,
  kHeaders,
  kJsonBody,
  kContent,
  kData,
  kTimeout,
  kFollowRedirects,
  kRaiseForStatus,
};
constexpr Field kFields[] = {
    {.name = "method", .kind = FieldKind::kChoice, .default_json = "\"GET\"", .choices = kMethods},
    {.name = "url", .kind = FieldKind::kString, .required = true},
    {.name = "params", .kind = FieldKind::kObject, .nullable = true},
    {.name = "headers", .kind = FieldKind::kStringMap, .nullable = true},
    {.name = "json_body", .nullable = true},
    {.name = "content", .nullable = true},
    {.name = "data", .nullable = true},
    {.name = "timeout",
     .kind = FieldKind::kFloat,
     .nullable = true,
     .default_json = "30.0",
     .minimum = 0},
    {.name = "follow_redirects", .kind = FieldKind::kBool, .default_json = "true"},
    {.name = "raise_for_status", .kind = FieldKind::kBool, .default_json = "false"},
};

// `params` takes the place of the query that the URL has.
std::string UrlOf(const Visit& visit) {
  std::string url = visit.fields[kUrl].as_string();
  if (visit.fields[kParams].is_null()) return url;
  std::string fragment;
  if (const std::size_t hash = url.find('#'); hash != std::string::npos) {
    fragment = url.substr(hash);
    url.resize(hash);
  }
  url.resize(std::min(url.find('?'), url.size()));
  const json::Object& params = visit.fields[kParams].as_object();
  if (!params.empty()) url += "?" + FormOf(params);
  return url + fragment;
}

Result<void> SetText(http::OutboundRequest& request, const json::Value& text) {
  if (!text.is_string()) {
    return NodeFailed("Unexpected type for 'content', <class '" + std::string(PyType(text)) +
                      "'>: content, and data that are no object, must be text");
  }
  request.body = text.as_string();
  return {};
}

void SetTyped(http::OutboundRequest& request, std::string body, std::string_view type) {
  request.body = std::move(body);
  if (request.headers.Find("Content-Type") == nullptr) request.headers.Add("Content-Type", type);
}

// The first of data that is no object, content, data and json_body.
Result<void> SetBody(http::OutboundRequest& request, const Visit& visit) {
  const json::Value& data = visit.fields[kData];
  if (!data.is_null() && !data.is_object()) return SetText(request, data);
  if (!visit.fields[kContent].is_null()) return SetText(request, visit.fields[kContent]);
  if (json::Truth(data)) {
    SetTyped(request, FormOf(data.as_object()), "application/x-www-form-urlencoded");
  } else if (!visit.fields[kJsonBody].is_null()) {
    auto text = json::Write(visit.fields[kJsonBody]);
    if (!text) return NodeFailed("json_body: " + text.error().message);
    SetTyped(request, *std::move(text), "application/json");
  }
  return {};
}

Result<http::OutboundRequest> RequestOf(const Visit& visit) {
  const json::Value& url = visit.fields[kUrl];
  const json::Value& method = visit.fields[kMethod];
  if (!url.is_string() || !method.is_string()) {
    return NodeFailed("url and method must be strings; a template yielded another type");
  }
  http::OutboundRequest request{.method = method.as_string(), .url = UrlOf(visit)};
  if (visit.fields[kHeaders].is_object()) {
    for (const auto& [name, value] : visit.fields[kHeaders].as_object()) {
      request.headers.Add(name, PyStr(value));
    }
  }
  CAISSON_TRY(SetBody(request, visit));
  CAISSON_ASSIGN(request.times, TimesOf(visit.fields[kTimeout]));
  request.follow_redirects = json::Truth(visit.fields[kFollowRedirects]);
  return request;
}

// Names in lower case; what stands under one name is joined.
json::Object HeadersOf(const http::Headers& headers) {
  json::Object joined;
  for (const http::Field& field : headers) {
    json::Value& value = joined[Lower(ReplaceMalformed(field.name))];
    const std::string text = ReplaceMalformed(field.value);
    value = value.is_string() ? value.as_string() + ", " + text : text;
  }
  return joined;
}

json::Value JsonOf(std::string_view body) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (body.starts_with(kMark)) body.remove_prefix(kMark.size());
  auto value = json::Read(body);
  return value ? *std::move(value) : json::Value();
}

Status Explained(Status failure) {
  const bool is_transfer = failure.code.name.starts_with("outbound.") &&
                           failure.code != errors::kOutboundRefused &&
                           failure.code != errors::kOutboundNoNetwork;
  if (is_transfer) failure.message = "HTTP request failed: " + failure.message;
  return failure;
}

Result<json::Value> RunHttpRequest(const Visit& visit) {
  CAISSON_ASSIGN(const http::OutboundRequest request, RequestOf(visit));
  auto response = Exchange(visit, request);
  if (!response) return Fail(Explained(std::move(response).error()));
  if (json::Truth(visit.fields[kRaiseForStatus])) CAISSON_TRY(RaiseForStatus(*response));
  // As it was written where only the slash behind the host was missing.
  const std::string& url = response->url == request.url + "/" ? request.url : response->url;
  const std::string* type = response->headers.Find("Content-Type");
  return json::Object{{"status_code", response->status},
                      {"reason", response->reason},
                      {"url", url},
                      {"headers", HeadersOf(response->headers)},
                      {"content", DecodeBody(response->body, type != nullptr ? *type : "")},
                      {"json", JsonOf(response->body)},
                      {"elapsed", std::chrono::duration<double>(response->elapsed).count()}};
}

}  // namespace

extern constexpr NodeType kHttpRequestNode{"HttpRequestNode", kFields, RunHttpRequest, nullptr,
                                           Need::kNetwork};

}  // namespace caisson::nodes
