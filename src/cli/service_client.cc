// SPDX-License-Identifier: Apache-2.0
#include "cli/service_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/error_catalogue.h"
#include "base/foreign_text.h"
#include "errors/cli.h"
#include "errors/control.h"
#include "errors/http.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::cli {
namespace {

constexpr std::size_t kPage = 500;

std::string Variable(const char* name, const char* standard) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? standard : value;
}

// The code that the service names, when this program knows it.
ErrorCode CodeOf(const http::ClientAnswer& answer) {
  const std::string* name = answer.headers.Find("X-Error-Code");
  for (const ErrorEntry& entry : ErrorCatalogue()) {
    if (name != nullptr && entry.code == *name) return {entry.code};
  }
  return errors::kHttpBroken;
}

std::string MessageOf(const http::ClientAnswer& answer) {
  const auto body = json::Read(answer.body);
  if (!body) return fmt::format("the service answered {}", answer.status);
  std::string text = TextOf(*body, "message");
  const json::Value* data = body->Find("data");
  if (data != nullptr && data->is_string()) text = data->as_string();
  if (data != nullptr && data->is_object()) {
    for (const auto& [key, value] : data->as_object()) {
      if (key != "code" && value.is_string()) text = key + ": " + value.as_string();
    }
  }
  return ShowForeignLine(text);
}

std::unexpected<Status> Refused(const http::ClientAnswer& answer) {
  return Fail(CodeOf(answer), MessageOf(answer));
}

bool IsGood(const http::ClientAnswer& answer) {
  return answer.status >= 200 && answer.status < 300;
}

Result<http::ClientRequest> RequestOf(const std::string& method, const std::string& path,
                                      const json::Value& body) {
  http::ClientRequest request{.method = method, .path = path};
  if (body.is_null()) return request;
  request.headers.Add("Content-Type", "application/json");
  CAISSON_ASSIGN(request.body, json::Write(body));
  return request;
}

}  // namespace

std::string TextOf(const json::Value& object, std::string_view key) {
  const json::Value* found = object.Find(key);
  return found != nullptr && found->is_string() ? found->as_string() : "";
}

std::int64_t NumberOf(const json::Value& object, std::string_view key) {
  const json::Value* found = object.Find(key);
  return found != nullptr && found->is_int() ? found->as_int() : 0;
}

Result<ServiceClient> ServiceClient::Make(const ConnectionArguments& arguments) {
  std::string url = arguments.url.value_or(Variable("CAISSON_URL", "http://127.0.0.1:8787"));
  const std::string key = arguments.key.value_or(Variable("CAISSON_API_KEY", ""));
  if (key.empty()) {
    return Fail(errors::kCliUsage, "there is no API key: set CAISSON_API_KEY, or give --key");
  }
  http::ClientOptions options{.headers = {{"X-Api-Key", key}}};
  if (url.starts_with("unix:")) {
    options.unix_socket = url.substr(5);
    url = "http://localhost";
  }
  options.base_url = std::move(url);
  CAISSON_ASSIGN(http::Client client, http::Client::Make(std::move(options)));
  return ServiceClient(std::move(client));
}

Result<http::ClientAnswer> ServiceClient::Send(const http::ClientRequest& request) {
  CAISSON_ASSIGN(http::ClientAnswer answer, client_.Send(request));
  if (!IsGood(answer)) return Refused(answer);
  return answer;
}

Result<json::Value> ServiceClient::Call(const std::string& method, const std::string& path,
                                        const json::Value& body) {
  CAISSON_ASSIGN(const http::ClientRequest request, RequestOf(method, path, body));
  CAISSON_ASSIGN(const http::ClientAnswer answer, Send(request));
  CAISSON_ASSIGN(const json::Value envelope, json::Read(answer.body));
  const json::Value* data = envelope.Find("data");
  if (data == nullptr) {
    return Fail(errors::kHttpBroken, "what answers there is no sandbox service: no data in it");
  }
  return *data;
}

Result<void> ServiceClient::Stream(const std::string& method, const std::string& path,
                                   const json::Value& body,
                                   const std::function<Result<bool>(const json::Value&)>& take,
                                   const std::stop_token& stop) {
  CAISSON_ASSIGN(http::ClientRequest request, RequestOf(method, path, body));
  std::string rest;
  bool has_ended = false;
  request.stop = stop;
  request.download = [&](std::string_view bytes) -> Result<void> {
    rest += bytes;
    for (std::size_t end = rest.find('\n'); end != std::string::npos && !has_ended;
         end = rest.find('\n')) {
      const std::string line = rest.substr(0, end);
      rest.erase(0, end + 1);
      if (line.empty()) continue;
      CAISSON_ASSIGN(const json::Value value, json::Read(line));
      CAISSON_ASSIGN(const bool goes_on, take(value));
      has_ended = !goes_on;
    }
    // Ends the request; nothing failed.
    if (has_ended) return Fail(errors::kHttpBroken, "ended");
    return {};
  };
  auto answer = client_.Send(request);
  if (has_ended) return {};
  if (!answer) return Fail(std::move(answer).error());
  if (!IsGood(*answer)) return Refused(*answer);
  return {};
}

Result<json::Array> ServiceClient::List(const std::string& path_with_query) {
  json::Array all;
  const char mark = path_with_query.find('?') == std::string::npos ? '?' : '&';
  while (true) {
    CAISSON_ASSIGN(const json::Value page,
                   Call("GET", fmt::format("{}{}limit={}&offset={}", path_with_query, mark, kPage,
                                           all.size())));
    const json::Value* items = page.Find("data");
    if (items == nullptr || !items->is_array() || items->as_array().empty()) return all;
    all.insert(all.end(), items->as_array().begin(), items->as_array().end());
    const json::Value* pagination = page.Find("pagination");
    if (pagination == nullptr ||
        static_cast<std::int64_t>(all.size()) >= NumberOf(*pagination, "total")) {
      return all;
    }
  }
}

Result<std::string> ServiceClient::PathOf(const std::string& sandbox) {
  if (sandbox.starts_with("sb-") || sandbox.starts_with("sb_")) {
    return "/v1/sandboxes/" + http::PercentEncode(sandbox);
  }
  CAISSON_ASSIGN(const json::Array all, List("/v1/sandboxes"));
  for (const json::Value& one : all) {
    const std::string status = TextOf(one, "status");
    if (TextOf(one, "name") == sandbox && status != "failed" && status != "destroyed") {
      return "/v1/sandboxes/" + http::PercentEncode(TextOf(one, "id"));
    }
  }
  return Fail(errors::kControlNotFound,
              "there is no sandbox " + ShowForeignLine(sandbox) + "; caisson sandbox ls shows all");
}

}  // namespace caisson::cli
