// SPDX-License-Identifier: Apache-2.0
// The requests on one HTTP/1 connection, one after another, as a guest sends them: where each
// begins, for which host it is, and where it ends, so that no second one hides behind the first.
// Strict (http/head.h): what two readers could understand in two ways is bad. Changes nothing; no
// input or output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/chunks.h"

namespace caisson::egress::gate {

class HttpRequests {
 public:
  static constexpr std::size_t kMaxHead = 32u << 10;
  static constexpr std::size_t kMaxFields = 128;

  enum class What : std::uint8_t {
    kMore,    // nothing can be said before more has come
    kHead,    // a request begins: it is for host()
    kBody,    // belongs to the request before
    kNoHost,  // a request that names no host, or an address
    kTunnel,  // CONNECT, an upgrade, HTTP/2: what follows would not be HTTP/1
    kBad,     // no request, or one with more than one meaning: see why_bad()
  };
  struct Step {
    What what = What::kMore;
    std::size_t size = 0;  // of `bytes`, for kHead and kBody; else 0
  };
  // `bytes` follow on those that earlier steps took. `port`: of the connection; a Host with another
  // one is bad.
  Step Next(std::string_view bytes, std::uint16_t port);

  // What is still to come of a body of known length, for who passes it on without a look: Next goes
  // on behind it.
  std::uint64_t TakeBody();

  // Lower case, without a port and without a dot at its end.
  const std::string& host() const { return host_; }
  // What a refused request called its host; printable.
  const std::string& claimed() const { return claimed_; }
  const char* why_bad() const { return why_bad_; }

 private:
  enum class State : std::uint8_t { kBetween, kLength, kChunked, kEnded };
  Step Head(std::string_view head, std::uint16_t port);
  Step Bad(const char* why);
  What TakeHost(std::string_view authority, std::uint16_t port);

  State state_ = State::kBetween;
  bool ends_after_ = false;  // no request may follow
  std::size_t scanned_ = 0;
  std::uint64_t left_ = 0;
  http::ChunkDecoder chunks_;
  std::string host_;
  std::string claimed_;
  const char* why_bad_ = "";
};

}  // namespace caisson::egress::gate
