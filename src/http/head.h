// SPDX-License-Identifier: Apache-2.0
// The head of an HTTP/1 message and the form of its body, read strictly: what two readers could
// understand in two ways (RFC 9112 section 11) is refused, never mended. Beast's parser is not used
// here because it takes folded fields and repeated lengths.
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

// `head` ends with its empty line. Fills method, target (origin form), host, version and headers.
// http.bad_request, http.header_too_large, http.version.
Result<void> ParseRequestHead(std::string_view head, std::size_t most_fields, Request& request);

struct ResponseHead {
  int status = 0;
  int version = 11;
  Headers headers;
};
// The same for an answer; http.bad_request.
Result<ResponseHead> ParseResponseHead(std::string_view head, std::size_t most_fields);

struct Framing {
  enum class Body { kNone, kLength, kChunked, kUntilClose };
  Body body = Body::kNone;
  std::uint64_t length = 0;
  bool keep_alive = true;
  bool expects_continue = false;
};
// http.bad_request, http.transfer_coding, http.expectation.
Result<Framing> RequestFraming(const Request& request);
// http.bad_request, http.transfer_coding.
Result<Framing> ResponseFraming(const ResponseHead& head, bool of_head_request);

// True for what may stand in Host or :authority.
bool IsHost(std::string_view text);

}  // namespace caisson::http
