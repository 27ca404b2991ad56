// SPDX-License-Identifier: Apache-2.0
#include "http/outbound.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "errors/outbound.h"
#include "http/outbound_guard.h"
#include "http/outbound_mail.h"
#include "http/outbound_transfer.h"

namespace caisson::http {
namespace {

constexpr std::size_t kMostHeaderBytes = 128u << 10;

// One hop: what curl's callbacks fill.
struct Hop {
  const OutboundRequest& request;
  const BodySink& sink;
  OutboundResponse response = {};
  std::size_t header_bytes = 0;
  std::size_t body_bytes = 0;
  std::optional<Status> failed;

  bool is_redirect() const {
    const int status = response.status;
    return (status == 301 || status == 302 || status == 303 || status == 307 || status == 308) &&
           response.headers.Find("Location") != nullptr;
  }
};

std::string_view TrimmedLine(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  return line;
}

void TakeStatusLine(std::string_view line, OutboundResponse& response) {
  response = {};
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return;
  line.remove_prefix(space + 1);
  const auto parsed = std::from_chars(line.data(), line.data() + line.size(), response.status);
  line.remove_prefix(static_cast<std::size_t>(parsed.ptr - line.data()));
  if (line.starts_with(' ')) line.remove_prefix(1);
  // As the peer's client shows it.
  std::ranges::copy_if(line, std::back_inserter(response.reason),
                       [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::size_t TakeHeader(char* bytes, std::size_t, std::size_t size, void* user) {
  Hop& hop = *static_cast<Hop*>(user);
  hop.header_bytes += size;
  if (hop.header_bytes > kMostHeaderBytes) {
    hop.failed =
        Status{errors::kOutboundTooLarge,
               fmt::format("the header of the answer has more than {} bytes", kMostHeaderBytes)};
    return 0;
  }
  const std::string_view line = TrimmedLine({bytes, size});
  if (line.starts_with("HTTP/")) {  // a new head; what came before was interim
    TakeStatusLine(line, hop.response);
  } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
    std::string_view value = line.substr(colon + 1);
    while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
    while (value.ends_with(' ') || value.ends_with('\t')) value.remove_suffix(1);
    hop.response.headers.Add(line.substr(0, colon), value);
  }
  return size;
}

std::size_t TakeBody(char* bytes, std::size_t, std::size_t size, void* user) {
  Hop& hop = *static_cast<Hop*>(user);
  hop.body_bytes += size;
  if (hop.body_bytes > hop.request.most_bytes) {
    hop.failed = Status{errors::kOutboundTooLarge,
                        fmt::format("the answer has more than {} bytes", hop.request.most_bytes)};
    return CURL_WRITEFUNC_ERROR;
  }
  const bool ok = hop.response.status >= 200 && hop.response.status < 300;
  if (!hop.sink || !ok) {
    hop.response.body.append(bytes, size);
    return size;
  }
  const Result<bool> more = hop.sink({bytes, size});
  if (!more) {
    hop.failed = more.error();
  } else if (!*more) {
    hop.response.cut = true;
  }
  return more && *more ? size : CURL_WRITEFUNC_ERROR;
}

// How a request goes on after redirects.
struct Outgoing {
  std::string method;
  Headers headers;
  std::optional<std::string> body;
};

Result<void> CheckHeaders(const OutboundRequest& request) {
  if (!IsToken(request.method)) {
    return Fail(errors::kOutboundBadRequest,
                fmt::format("'{}' is no HTTP method", request.method.substr(0, 100)));
  }
  for (const Field& field : request.headers) {
    if (!IsToken(field.name) || !IsFieldValue(field.value)) {
      return Fail(errors::kOutboundBadRequest,
                  fmt::format("the header '{}' has a name or value that is not allowed",
                              field.name.substr(0, 100)));
    }
    const bool frames = EqualsIgnoringCase(field.name, "Transfer-Encoding");
    const bool counts = EqualsIgnoringCase(field.name, "Content-Length") &&
                        field.value != std::to_string(request.body ? request.body->size() : 0);
    if (frames || counts) {
      return Fail(
          errors::kOutboundBadRequest,
          fmt::format("the header '{}' contradicts the request's body; leave it out", field.name));
    }
  }
  return {};
}

// As browsers and the peer's client do it: only 307 and 308 keep the method and the body.
void Redirect(Outgoing& outgoing, int status, const Target& from, const Target& to) {
  const bool to_get = (status == 303 && outgoing.method != "HEAD") ||
                      (status == 302 && outgoing.method != "HEAD") ||
                      (status == 301 && outgoing.method == "POST");
  if (to_get && outgoing.method != "GET") {
    outgoing.method = "GET";
    outgoing.headers.Remove("Content-Length");
  }
  if (to_get) outgoing.body.reset();
  const bool upgraded = from.host == to.host && from.scheme == "http" && from.port == 80 &&
                        to.scheme == "https" && to.port == 443;
  if (!from.SameOrigin(to)) {
    outgoing.headers.Remove("Host");
    if (!upgraded) {
      outgoing.headers.Remove("Authorization");
      outgoing.headers.Remove("Proxy-Authorization");
    }
  }
  outgoing.headers.Remove("Cookie");  // those that the servers set go on, each to its own
}

class CurlOutbound final : public Outbound {
 public:
  explicit CurlOutbound(OutboundPolicy policy) : policy_(std::move(policy)), guard_(policy_) {}

  Result<OutboundResponse> Send(const OutboundRequest& request, const BodySink& sink,
                                std::stop_token stop) override {
    CAISSON_TRY(CheckHeaders(request));
    CAISSON_ASSIGN(Target target, ReadTarget(request.url));
    CurlTransfer transfer(request.times, request.give_up, std::move(stop));
    if (transfer.easy() == nullptr) {
      return Fail(errors::kOutboundBroken, "libcurl cannot be set up");
    }
    Outgoing outgoing{request.method, request.headers, request.body};
    for (int redirects = 0;; ++redirects) {
      Hop hop{request, sink};
      CAISSON_TRY(OneHop(transfer, target, outgoing, hop));
      if (!request.follow_redirects || !hop.is_redirect()) return std::move(hop.response);
      if (redirects >= request.most_redirects) {
        return Fail(errors::kOutboundRedirects,
                    fmt::format("'{}' leads to more than {} redirects", request.url.substr(0, 300),
                                request.most_redirects));
      }
      CAISSON_ASSIGN(Target next, ReadRedirect(target, *hop.response.headers.Find("Location")));
      Redirect(outgoing, hop.response.status, target, next);
      target = std::move(next);
    }
  }

  Result<MailOutcome> SendMail(const MailRequest& mail, std::stop_token stop) override {
    return http::SendMail(guard_, policy_.ca_file, mail, std::move(stop));
  }

 private:
  Result<void> OneHop(CurlTransfer& transfer, const Target& target, const Outgoing& outgoing,
                      Hop& hop) const {
    CAISSON_ASSIGN(const auto addresses,
                   guard_.Check(target, transfer.deadline(), [&] { return transfer.Stopped(); }));
    transfer.Begin(target, addresses, hop.request.verify_tls, policy_.ca_file);
    CURL* raw = transfer.easy();
    const CurlList lines = SetRequest(raw, target, outgoing);
    curl_easy_setopt(raw, CURLOPT_HEADERFUNCTION, TakeHeader);
    curl_easy_setopt(raw, CURLOPT_HEADERDATA, &hop);
    curl_easy_setopt(raw, CURLOPT_WRITEFUNCTION, TakeBody);
    curl_easy_setopt(raw, CURLOPT_WRITEDATA, &hop);
    const auto begin = std::chrono::steady_clock::now();
    auto done = transfer.Perform(target, hop.failed);
    if (!done && !hop.response.cut) return done;
    hop.response.elapsed = std::chrono::steady_clock::now() - begin;
    hop.response.url = target.url;
    return {};
  }

  static CurlList SetRequest(CURL* raw, const Target& target, const Outgoing& outgoing) {
    curl_easy_setopt(raw, CURLOPT_URL, target.url.c_str());
    curl_easy_setopt(raw, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    // An engine, no file. (COOKIEFILE keeps a list that a reset of the handle forgets to free.)
    curl_easy_setopt(raw, CURLOPT_COOKIELIST, "");
    curl_easy_setopt(raw, CURLOPT_ACCEPT_ENCODING, "gzip, deflate");
    curl_easy_setopt(raw, CURLOPT_USERAGENT, "caisson");
    const bool may_be_empty =
        outgoing.method == "POST" || outgoing.method == "PUT" || outgoing.method == "PATCH";
    if (outgoing.method == "HEAD") {
      curl_easy_setopt(raw, CURLOPT_NOBODY, 1L);  // and sends none
    } else if (outgoing.body || may_be_empty) {
      static const std::string kNothing;
      const std::string& body = outgoing.body ? *outgoing.body : kNothing;
      curl_easy_setopt(raw, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
      curl_easy_setopt(raw, CURLOPT_POSTFIELDS, body.c_str());
    }
    curl_easy_setopt(raw, CURLOPT_CUSTOMREQUEST, outgoing.method.c_str());
    CurlList lines;
    for (const Field& field : outgoing.headers) {
      // An empty value is told from a field to be left out by the semicolon.
      Append(lines, field.value.empty() ? field.name + ";"
                                        : fmt::format("{}: {}", field.name, field.value));
    }
    if (outgoing.headers.Find("Content-Type") == nullptr) Append(lines, "Content-Type:");
    if (outgoing.headers.Find("Expect") == nullptr) Append(lines, "Expect:");
    curl_easy_setopt(raw, CURLOPT_HTTPHEADER, lines.get());
    return lines;
  }

  const OutboundPolicy policy_;
  const Guard guard_;
};

}  // namespace

std::unique_ptr<Outbound> MakeOutbound(OutboundPolicy policy) {
  return std::make_unique<CurlOutbound>(std::move(policy));
}

}  // namespace caisson::http
