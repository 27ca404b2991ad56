// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/http_requests.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "egress/gate_protocol.h"
#include "egress/name_rules.h"
#include "http/head.h"

namespace caisson::egress::gate {
namespace {

constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\n";

// The authority of a target in absolute form, empty for other forms.
struct Target {
  bool is_absolute = false;
  bool is_plain = true;  // of the scheme http
  std::string_view authority;
};
Target TargetOf(std::string_view head) {
  Target target;
  std::string_view text = head.substr(std::min(head.find(' ') + 1, head.size()));
  text = text.substr(0, text.find(' '));
  const std::size_t scheme = text.find("://");
  if (text.starts_with('/') || scheme == std::string_view::npos) return target;
  target.is_absolute = true;
  target.is_plain = text.substr(0, scheme) == "http";
  text.remove_prefix(scheme + 3);
  target.authority = text.substr(0, text.find_first_of("/?"));
  return target;
}

bool AsksForTunnel(const http::Request& request) {
  return request.method == "CONNECT" || request.method == "PRI" ||
         request.headers.Count("Upgrade") > 0 || request.headers.Count("HTTP2-Settings") > 0 ||
         request.headers.HasToken("Connection", "upgrade");
}

std::string Printable(std::string_view text) {
  std::string shown(text.substr(0, kMaxGateName));
  for (char& c : shown) c = c > 0x20 && c < 0x7f ? c : '?';
  return shown;
}

}  // namespace

HttpRequests::Step HttpRequests::Bad(const char* why) {
  why_bad_ = why;
  state_ = State::kEnded;
  return {What::kBad, 0};
}

HttpRequests::Step HttpRequests::Next(std::string_view bytes, std::uint16_t port) {
  if (bytes.empty()) return {};
  switch (state_) {
    case State::kEnded:
      return Bad("bytes behind the last request");
    case State::kLength: {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
      left_ -= size;
      if (left_ == 0) state_ = ends_after_ ? State::kEnded : State::kBetween;
      return {What::kBody, size};
    }
    case State::kChunked: {
      std::size_t size = 0;
      while (!chunks_.done()) {
        const auto step = chunks_.Next(bytes.substr(size), bytes.size());
        if (!step) return Bad("a chunked body that is malformed");
        if (step->consumed == 0) break;
        size += step->consumed;
      }
      if (chunks_.done()) state_ = ends_after_ ? State::kEnded : State::kBetween;
      if (size == 0 && bytes.size() > kMaxHead) return Bad("a chunk whose size has no end");
      return size == 0 ? Step{} : Step{What::kBody, size};
    }
    case State::kBetween:
      break;
  }
  if (bytes.starts_with(kHttp2Preface.substr(0, bytes.size()))) {
    if (bytes.size() < kHttp2Preface.size()) return {};
    state_ = State::kEnded;
    return {What::kTunnel, 0};
  }
  const std::size_t end = http::FindHeadEnd(bytes.substr(0, kMaxHead), scanned_);
  if (end == 0) {
    if (bytes.size() >= kMaxHead) return Bad("a header of more than 32 KiB");
    scanned_ = bytes.size();
    return {};
  }
  scanned_ = 0;
  return Head(bytes.substr(0, end), port);
}

std::uint64_t HttpRequests::TakeBody() {
  if (state_ != State::kLength) return 0;
  state_ = ends_after_ ? State::kEnded : State::kBetween;
  return std::exchange(left_, 0);
}

HttpRequests::Step HttpRequests::Head(std::string_view head, std::uint16_t port) {
  http::Request request;
  claimed_.clear();
  const auto framing = http::ParseRequestHead(head, kMaxFields, request);
  const std::string* host = request.headers.Find("Host");
  if (host != nullptr) claimed_ = Printable(*host);
  if (!framing) {
    if (request.method == "CONNECT") {
      state_ = State::kEnded;
      return {What::kTunnel, 0};
    }
    return Bad("a malformed or ambiguous HTTP request");
  }
  if (AsksForTunnel(request)) {
    state_ = State::kEnded;
    return {What::kTunnel, 0};
  }
  const Target target = TargetOf(head);
  if (!target.is_plain) return Bad("a request target of another scheme than http");
  if (host == nullptr && !target.is_absolute) {
    state_ = State::kEnded;
    return {What::kNoHost, 0};
  }
  // Servers differ in which of the two they take (RFC 9112 section 3.2.2): they must say the same.
  if (target.is_absolute) {
    claimed_ = Printable(target.authority);
    const What what = TakeHost(target.authority, port);
    if (what != What::kHead) return {what, 0};
  }
  const std::string of_target = host_;
  if (host != nullptr) {
    const What what = TakeHost(*host, port);
    if (what != What::kHead) return {what, 0};
    if (target.is_absolute && host_ != of_target) return Bad("a Host that differs from the target");
  }

  ends_after_ = !framing->keep_alive;
  left_ = framing->length;
  chunks_ = {};
  using Body = http::Framing::Body;
  state_ = framing->body == Body::kLength    ? State::kLength
           : framing->body == Body::kChunked ? State::kChunked
           : ends_after_                     ? State::kEnded
                                             : State::kBetween;
  return {What::kHead, head.size()};
}

HttpRequests::What HttpRequests::TakeHost(std::string_view authority, std::uint16_t port) {
  const std::size_t colon = authority.rfind(':');
  std::string_view name = authority;
  if (colon != std::string_view::npos && authority.find(']') == std::string_view::npos) {
    name = authority.substr(0, colon);
    const std::string_view digits = authority.substr(colon + 1);
    std::uint16_t number = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), number);
    if (error != std::errc() || end != digits.end() || number != port) {
      return Bad("a Host with another port than that of the connection").what;
    }
  }
  host_ = CanonicalName(name);
  if (IsGateName(host_)) return What::kHead;
  host_.clear();
  state_ = State::kEnded;
  return What::kNoHost;
}

}  // namespace caisson::egress::gate
