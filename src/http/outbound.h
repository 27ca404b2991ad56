// SPDX-License-Identifier: Apache-2.0
// What a node sends into the world: HTTP requests and mail, by libcurl, behind a guard. The author
// of the node chose the target and is not trusted, so only public addresses are open: the scheme is
// http or https; a name is resolved here, every one of its addresses must be public, and the
// connection is made to these addresses and no others; each redirect passes the same checks. No
// proxy, no .netrc, no cookies but those of one Send, TLS always verified unless the request says
// otherwise, everything bounded in size and time. Thread-safe; blocks its caller.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "http/headers.h"
#include "http/resolver.h"

namespace caisson::http {

struct OutboundTimes {
  std::optional<std::chrono::milliseconds> connect = std::chrono::seconds(30);
  // Without a byte in either direction, the wait for the answer among it.
  std::optional<std::chrono::milliseconds> idle = std::chrono::seconds(30);
  std::chrono::milliseconds total = std::chrono::minutes(10);  // of all redirects together
};

struct OutboundRequest {
  std::string method = "GET";
  std::string url;
  Headers headers;
  std::optional<std::string> body;  // HEAD has none
  OutboundTimes times;
  bool follow_redirects = true;
  int most_redirects = 20;
  std::size_t most_bytes = 16u << 20;  // of the answer's body, decoded
  bool verify_tls = true;
  // Asked every few milliseconds; true ends the transfer with outbound.stopped. May be null.
  std::function<bool()> give_up;
};

struct OutboundResponse {
  int status = 0;
  std::string reason;
  std::string url;  // that answered, after redirects
  Headers headers;
  std::string body;                     // decoded as Content-Encoding says
  std::chrono::nanoseconds elapsed{0};  // of the last hop
  bool cut = false;                     // the sink wanted no more
};

// Gets the body of an answer of 2xx piece by piece, in place of OutboundResponse::body; false wants
// no more. A Status ends the transfer with that Status. Bodies of other answers are collected.
using BodySink = std::function<Result<bool>(std::string_view piece)>;

struct MailRequest {
  std::string host;
  std::uint16_t port = 587;
  bool start_tls = true;                          // needed, not tried
  std::optional<std::string> username, password;  // both: the server must take them
  std::string from;                               // of the envelope: addresses alone
  std::vector<std::string> recipients;
  std::string message;  // with its header; lines end with CR LF
  OutboundTimes times;
  std::function<bool()> give_up;
};

struct MailOutcome {
  struct Refusal {
    std::string recipient;
    int code;
    std::string reply;
  };
  std::vector<Refusal> refused;  // the others were accepted, at least one
};

class Outbound {
 public:
  virtual ~Outbound() = default;
  // Any status is an answer. Fails with outbound.bad_request, .refused, .unreachable, .untrusted,
  // .timed_out, .stopped, .too_large, .redirects or .broken.
  virtual Result<OutboundResponse> Send(const OutboundRequest& request, const BodySink& sink,
                                        std::stop_token stop) = 0;
  // Fails as Send does, and with outbound.mail when the server takes no recipient, or not the mail.
  virtual Result<MailOutcome> SendMail(const MailRequest& mail, std::stop_token stop) = 0;
};

// Servers of the own host that nodes may send requests to: those of tests, and those that an
// operator names (caisson run --allow-endpoint). Each target is the host and port of a URL as it
// stands there ("127.0.0.1:8080"), may be only of the loopback, and nothing else is opened.
struct LoopbackGrant {
  std::vector<std::string> targets;
};

struct OutboundPolicy {
  LoopbackGrant loopback;
  Resolver* resolver = nullptr;  // null: the system's; must outlive the Outbound
  std::string ca_file;           // PEM; empty: the authorities of the system
};

std::unique_ptr<Outbound> MakeOutbound(OutboundPolicy policy);

}  // namespace caisson::http
