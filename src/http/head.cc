// SPDX-License-Identifier: Apache-2.0
#include "http/head.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "errors/http.h"

namespace caisson::http {
namespace {

std::unexpected<Status> Bad(std::string message) {
  return Fail(errors::kHttpBadRequest, std::move(message));
}

// Takes one line off `rest`, which ends with CRLF; nullopt when it holds a bare CR, LF or NUL.
std::optional<std::string_view> TakeLine(std::string_view& rest) {
  const std::size_t end = rest.find_first_of(std::string_view("\r\n\0", 3));
  if (end == std::string_view::npos || rest.substr(end, 2) != "\r\n") return std::nullopt;
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end + 2);
  return line;
}

std::string_view TrimSpace(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

Result<std::string_view> NextLine(std::string_view& rest) {
  const auto line = TakeLine(rest);
  if (!line) return Bad("the header has a CR, LF or NUL that does not end a line");
  return *line;
}

Result<void> ParseFields(std::string_view rest, std::size_t most_fields, Headers& headers) {
  while (true) {
    CAISSON_ASSIGN(const std::string_view line, NextLine(rest));
    if (line.empty()) return {};
    if (headers.size() == most_fields) {
      return Fail(errors::kHttpHeaderTooLarge,
                  fmt::format("the header has more than {} fields", most_fields));
    }
    if (line.front() == ' ' || line.front() == '\t') {
      return Bad("a field of the header is folded over two lines");
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) {
      return Bad("a line of the header does not begin with a field name and a colon");
    }
    const std::string_view value = TrimSpace(line.substr(colon + 1));
    if (!IsFieldValue(value)) return Bad("a field of the header holds a control character");
    headers.Add(line.substr(0, colon), value);
  }
}

Result<int> ParseVersion(std::string_view text) {
  if (text == "HTTP/1.1") return 11;
  if (text == "HTTP/1.0") return 10;
  if (text.starts_with("HTTP/") && IsToken(text.substr(5))) {
    return Fail(errors::kHttpVersion, "the HTTP version is not supported; use 1.1");
  }
  return Bad("the first line does not name an HTTP version");
}

bool IsVisible(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
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

Result<void> FindHost(Request& request) {
  const std::size_t count = request.headers.Count("Host");
  if (count > 1) return Bad("the header has more than one Host");
  if (count == 0 && request.version >= 11) return Bad("the header has no Host");
  if (request.host.empty() && count == 1) request.host = *request.headers.Find("Host");
  if (!IsHost(request.host)) return Bad("the Host is malformed");
  return {};
}

Result<std::uint64_t> ParseLength(const Headers& headers) {
  if (headers.Count("Content-Length") > 1)
    return Bad("the header has more than one Content-Length");
  const std::string& text = *headers.Find("Content-Length");
  const bool digits =
      !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || text.size() > 18 || (text.size() > 1 && text.front() == '0')) {
    return Bad("the Content-Length is no plain number of bytes");
  }
  return std::stoull(text);
}

Result<Framing> BodyFraming(const Headers& headers, int version) {
  Framing framing;
  const std::size_t codings = headers.Count("Transfer-Encoding");
  const bool has_length = headers.Count("Content-Length") > 0;
  if (codings > 0) {
    if (has_length) return Bad("the header has both a Content-Length and a Transfer-Encoding");
    if (version < 11) return Bad("HTTP/1.0 has no Transfer-Encoding");
    if (codings > 1 || !EqualsIgnoringCase(*headers.Find("Transfer-Encoding"), "chunked")) {
      return Fail(errors::kHttpTransferCoding, "the Transfer-Encoding is not exactly \"chunked\"");
    }
    framing.body = Framing::Body::kChunked;
  } else if (has_length) {
    CAISSON_ASSIGN(framing.length, ParseLength(headers));
    if (framing.length > 0) framing.body = Framing::Body::kLength;
  }
  framing.keep_alive = version >= 11 ? !headers.HasToken("Connection", "close")
                                     : headers.HasToken("Connection", "keep-alive");
  return framing;
}

}  // namespace

std::size_t FindHeadEnd(std::string_view bytes, std::size_t scanned) {
  const std::size_t from = scanned > 3 ? scanned - 3 : 0;
  const std::size_t found = bytes.find("\r\n\r\n", from);
  return found == std::string_view::npos ? 0 : found + 4;
}

bool IsHost(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view(".-_~:[]%").find(c) != std::string_view::npos;
  });
}

Result<void> ParseRequestHead(std::string_view head, std::size_t most_fields, Request& request) {
  CAISSON_ASSIGN(const std::string_view line, NextLine(head));
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return Bad("the first line is no \"METHOD target HTTP/1.1\"");
  }
  const std::string_view target = line.substr(first + 1, last - first - 1);
  CAISSON_ASSIGN(request.version, ParseVersion(line.substr(last + 1)));
  request.method = line.substr(0, first);
  if (!IsToken(request.method) || request.method.size() > 32) return Bad("the method is malformed");
  if (!IsVisible(target) || target.find('#') != std::string_view::npos) {
    return Bad("the request target holds a character that must be percent-encoded");
  }
  request.target = target;
  CAISSON_TRY(ParseFields(head, most_fields, request.headers));
  CAISSON_TRY(NormalizeTarget(request));
  return FindHost(request);
}

Result<ResponseHead> ParseResponseHead(std::string_view head, std::size_t most_fields) {
  ResponseHead response;
  CAISSON_ASSIGN(const std::string_view line, NextLine(head));
  CAISSON_ASSIGN(response.version, ParseVersion(line.substr(0, line.find(' '))));
  const std::string_view status = line.size() >= 12 ? line.substr(9, 3) : std::string_view();
  const bool digits = status.size() == 3 &&
                      std::ranges::all_of(status, [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || status.front() == '0' || (line.size() > 12 && line[12] != ' ')) {
    return Bad("the first line has no status of three digits");
  }
  for (const char c : status) response.status = response.status * 10 + (c - '0');
  CAISSON_TRY(ParseFields(head, most_fields, response.headers));
  return response;
}

Result<Framing> RequestFraming(const Request& request) {
  CAISSON_ASSIGN(Framing framing, BodyFraming(request.headers, request.version));
  if (const std::string* expect = request.headers.Find("Expect")) {
    if (!EqualsIgnoringCase(*expect, "100-continue")) {
      return Fail(errors::kHttpExpectation, "the Expect of the request is not 100-continue");
    }
    framing.expects_continue = request.version >= 11 && framing.body != Framing::Body::kNone;
  }
  return framing;
}

Result<Framing> ResponseFraming(const ResponseHead& head, bool of_head_request) {
  CAISSON_ASSIGN(Framing framing, BodyFraming(head.headers, head.version));
  const bool bodiless =
      of_head_request || head.status < 200 || head.status == 204 || head.status == 304;
  if (bodiless) {
    framing.body = Framing::Body::kNone;
  } else if (framing.body == Framing::Body::kNone && head.headers.Count("Content-Length") == 0) {
    framing.body = Framing::Body::kUntilClose;
  }
  return framing;
}

}  // namespace caisson::http
