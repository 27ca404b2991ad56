// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 and h2c (by prior knowledge) on plain ports and Unix sockets, HTTP/1.1 over TLS. A few
// I/O threads own the connections; handlers are blocking code on a bounded pool of threads, or
// short code on the I/O thread (Handler::may_block). A slow client blocks only the handler that
// serves it. Not a place for policy: no credentials, no envelopes (ErrorAnswer), no routes of its
// own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "http/exchange.h"
#include "http/router.h"

namespace caisson::http {

struct TlsFiles {
  std::string certificate;  // PEM, the chain
  std::string key;          // PEM
};

struct Listener {
  std::string address;  // "127.0.0.1:8080", "[::1]:0", "unix:/run/caisson/api.sock"
  std::optional<TlsFiles> tls;
  unsigned unix_mode = 0600;  // of the socket; a stale one (nobody answers) is taken away first
};

struct Limits {
  std::size_t header_bytes = 32 << 10;  // request line and fields; 431
  std::size_t header_fields = 128;
  std::size_t inline_body = 64 << 10;  // of requests that are handled on the I/O thread; 413
  std::size_t connections = 16384;     // beyond it new ones are answered 503 and closed
  std::size_t handler_threads = 256;   // all busy: 503 (http.busy) before anything is done
  std::size_t streams = 128;           // at once on one HTTP/2 connection
  std::size_t buffer = 256 << 10;      // bytes held for one exchange, each way
  std::chrono::milliseconds header_timeout{10'000};  // from its first byte to its last; TLS too
  std::chrono::milliseconds idle_timeout{75'000};    // between requests
  std::chrono::milliseconds body_timeout{30'000};    // a handler waits and nothing comes
  std::size_t body_rate = 128;  // bytes/s that a body must reach on average after body_timeout
  std::chrono::milliseconds write_timeout{300'000};  // the client takes nothing
};

// One request that is over, for logs and metrics.
struct Served {
  const Request* request;             // nullptr when none could be read
  int status;                         // 0 when the client went before an answer
  bool whole;                         // the answer went out to its end
  std::uint64_t bytes_in, bytes_out;  // of the bodies
  std::chrono::nanoseconds duration;
};

struct Options {
  std::vector<Listener> listeners;
  Limits limits;
  std::size_t io_threads = 1;
  ErrorAnswer error_answer;                   // default: the message as plain text
  std::function<void(const Served&)> served;  // may be empty; on any thread, must be short
};

struct Counts {
  std::size_t connections;
  std::size_t exchanges;     // requests that are being handled
  std::size_t busy_threads;  // of the handler pool
};

class Server {
 public:
  // Listens and serves when it returns. http.misuse for a bad pattern, http.listen, http.tls.
  static Result<std::unique_ptr<Server>> Start(Options options, Router router);
  // Drains without patience. Returns when every handler has; so handlers heed Exchange::gone().
  virtual ~Server() = default;

  // Of the listener with that index, the port it really has (0 for Unix sockets).
  virtual std::uint16_t port(std::size_t listener = 0) const = 0;
  // Reads the certificates anew, for connections to come. On failure (http.tls) the old ones stay.
  virtual Result<void> ReloadTls() = 0;
  // No new connections; idle ones are closed, running requests are finished for at most `patience`,
  // then broken off. True when all were finished. Safe to call from any thread but a handler's.
  virtual bool Drain(std::chrono::milliseconds patience) = 0;
  virtual Counts counts() const = 0;
};

}  // namespace caisson::http
