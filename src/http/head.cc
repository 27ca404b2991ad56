// SPDX-License-Identifier: Apache-2.0
#include "http/head.h"

#include <algorithm>
#include <string>
#include <utility>

#include "errors/http.h"
#include "http/beast_parser.h"
#include "http/form.h"

namespace caisson::http {
namespace {

std::unexpected<Status> Bad(std::string message) {
  return Fail(errors::kHttpBadRequest, std::move(message));
}

std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

class RequestParser final : public BeastParser<true> {
 public:
  explicit RequestParser(Request& request) : request_(request) {}

 private:
  void on_request_impl(boost::beast::http::verb, Text method, Text target, int version,
                       Error&) override {
    request_.method = View(method);
    request_.target = View(target);
    request_.version = version;
  }
  void on_field_impl(boost::beast::http::field, Text name, Text value, Error&) override {
    request_.headers.Add(View(name), View(value));
  }

  Request& request_;
};

class ResponseParser final : public BeastParser<false> {
 public:
  explicit ResponseParser(ResponseHead& head) : head_(head) {}

 private:
  void on_response_impl(int status, Text, int version, Error&) override {
    head_.status = status;
    head_.version = version;
  }
  void on_field_impl(boost::beast::http::field, Text name, Text value, Error&) override {
    head_.headers.Add(View(name), View(value));
  }

  ResponseHead& head_;
};

template <bool is_request>
Framing FramingOf(const BeastParser<is_request>& parser) {
  Framing framing;
  framing.keep_alive = parser.keep_alive();
  framing.length = parser.content_length().value_or(0);
  if (parser.chunked()) {
    framing.body = Framing::Body::kChunked;
  } else if (framing.length > 0) {
    framing.body = Framing::Body::kLength;
  } else if (parser.need_eof()) {
    framing.body = Framing::Body::kUntilClose;
  }
  return framing;
}

// Brings an absolute form ("http://host/path") into origin form, with its host.
Result<void> NormalizeTarget(Request& request) {
  std::string_view target = request.target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(scheme.size());
    const std::size_t end = std::min(target.find_first_of("/?"), target.size());
    request.host = target.substr(0, end);
    std::string origin(target.substr(end));
    if (!origin.starts_with('/')) origin.insert(0, "/");
    request.target = std::move(origin);
    return {};
  }
  if (target.starts_with('/') || (target == "*" && request.method == "OPTIONS")) return {};
  return Bad("the request target is no path");
}

Result<void> TakeHost(Request& request) {
  const std::string* host = request.headers.Find("Host");
  if (request.host.empty() && host) request.host = *host;
  return IsHost(request.host) ? Result<void>() : Bad("the Host is malformed");
}

}  // namespace

std::size_t FindHeadEnd(std::string_view bytes, std::size_t scanned) {
  const std::size_t from = scanned > 3 ? scanned - 3 : 0;
  const std::size_t found = bytes.find("\r\n\r\n", from);
  return found == std::string_view::npos ? 0 : found + 4;
}

Result<bool> ExpectsContinue(const Request& request) {
  const std::string* expect = request.headers.Find("Expect");
  if (!expect) return false;
  if (EqualsIgnoringCase(*expect, "100-continue")) return request.version >= 11;
  return Fail(errors::kHttpExpectation, "the Expect of the request is not 100-continue");
}

bool IsHost(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view(".-_~:[]%").find(c) != std::string_view::npos;
  });
}

Result<Framing> ParseRequestHead(std::string_view head, std::size_t most_fields, Request& request) {
  CAISSON_TRY(CheckRequestForm(head, most_fields));
  RequestParser parser(request);
  if (!parser.Take(head)) return Bad("the header is malformed");
  Framing framing = FramingOf(parser);
  CAISSON_TRY(NormalizeTarget(request));
  CAISSON_TRY(TakeHost(request));
  CAISSON_ASSIGN(const bool expects_continue, ExpectsContinue(request));
  framing.expects_continue = expects_continue && framing.body != Framing::Body::kNone;
  return framing;
}

Result<ResponseHead> ParseResponseHead(std::string_view head, std::size_t most_fields,
                                       bool of_head_request) {
  CAISSON_TRY(CheckResponseForm(head, most_fields));
  ResponseHead response;
  ResponseParser parser(response);
  parser.skip(of_head_request);
  if (!parser.Take(head)) return Bad("the header is malformed");
  response.framing = FramingOf(parser);
  const bool bodiless =
      of_head_request || response.status < 200 || response.status == 204 || response.status == 304;
  if (bodiless) response.framing.body = Framing::Body::kNone;
  return response;
}

}  // namespace caisson::http
