// SPDX-License-Identifier: Apache-2.0
// The head of an HTTP/1 message and the form of its body: checked strictly first (form.h), then
// parsed by Beast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "http/exchange.h"
#include "http/headers.h"

namespace caisson::http {

// The length of the head at the start of `bytes`, its empty line included; 0 when it is not whole.
// `scanned` bytes of it were looked at before.
std::size_t FindHeadEnd(std::string_view bytes, std::size_t scanned = 0);

// How the body ends, and what becomes of the connection.
struct Framing {
  enum class Body { kNone, kLength, kChunked, kUntilClose };
  Body body = Body::kNone;
  std::uint64_t length = 0;  // as declared, also where no body follows (an answer to HEAD)
  bool keep_alive = true;
  bool expects_continue = false;  // requests only
};

// `head` ends with its empty line. Fills method, target (origin form), host, version and headers.
// http.bad_request, http.header_too_large, http.version, http.transfer_coding, http.expectation.
Result<Framing> ParseRequestHead(std::string_view head, std::size_t most_fields, Request& request);

struct ResponseHead {
  int status = 0;
  int version = 11;
  Headers headers;
  Framing framing;
};
// The same for an answer; http.bad_request, http.header_too_large, http.version,
// http.transfer_coding.
Result<ResponseHead> ParseResponseHead(std::string_view head, std::size_t most_fields,
                                       bool of_head_request);

// Whether the client waits for "100 Continue" before it sends the body; http.expectation for any
// other wish.
Result<bool> ExpectsContinue(const Request& request);

// True for what may stand in Host or :authority.
bool IsHost(std::string_view text);

}  // namespace caisson::http
