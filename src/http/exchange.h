// SPDX-License-Identifier: Apache-2.0
// One request and its answer, as a handler sees them: blocking calls, the same for HTTP/1.1 and
// HTTP/2. An Exchange is used by one thread at a time (though one thread may read the body while
// another one answers) and is valid while its handler runs (a Stream that came out of it likewise).
// Abstract, so that a test of a handler can stand in for the server.
//
// The server adds Date, X-Request-Id, Content-Length or Transfer-Encoding, and Connection by
// itself, and drops those that a handler sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "http/headers.h"

namespace caisson::http {

struct Request {
  std::string method;
  std::string target;                 // as it came: path and query, still encoded
  std::string raw_path;               // the target without its query
  std::vector<std::string> segments;  // of the path, each decoded; "%2F" is a slash inside of one
  std::vector<std::pair<std::string, std::string>> query;       // decoded, in order
  std::vector<std::pair<std::string, std::string>> parameters;  // what {name} in the pattern took
  std::string_view pattern;  // "GET /v1/sandboxes/{id}", for metrics; empty when none took it
  Headers headers;
  std::string scheme;  // "http", "https"
  std::string host;    // of Host or :authority, as it came; may be empty for HTTP/1.0
  std::string peer;    // "192.0.2.1:4711", "[2001:db8::1]:4711", "unix"
  int version = 11;    // 10, 11, 20
  std::string id;      // of X-Request-Id when that is sane, else made
  std::optional<std::uint64_t> body_length;  // as declared; nullopt when it is not known before

  const std::string* Query(std::string_view name) const;  // the first of that name, or nullptr
  // The segment that {name} took, decoded; empty when the pattern has no such name.
  std::string_view Parameter(std::string_view name) const;
};

// Raw bytes both ways, after an upgrade. One thread may read while another one writes.
class Stream {
 public:
  virtual ~Stream() = default;
  // Blocks until there is something; 0 when the client will send no more.
  virtual Result<std::size_t> Read(std::span<char> into) = 0;
  // Blocks while the client is slow.
  virtual Result<void> Write(std::string_view bytes) = 0;
  // Tells the client that no more will come; reading goes on.
  virtual Result<void> CloseWrite() = 0;
  // Makes reading fail at once, also for a thread that is blocked in it. Writing goes on.
  virtual void EndReading() {}
  // The same for both directions.
  virtual void Abort() = 0;
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const Request& request() const = 0;

  // The body. Both fail with http.client_gone (the connection broke or the client gave up),
  // http.timed_out (it sends nothing, or too slowly) or http.bad_request (the chunks are
  // malformed). The first call sends "100 Continue" to a client that waits for it.
  virtual Result<std::size_t> ReadSome(std::span<char> into) = 0;  // blocks; 0 at the end
  // Makes reading fail at once, also for a thread that is blocked in it.
  virtual void EndReading() {}
  // What is left of the body; http.body_too_large when that is more than `limit`.
  Result<std::string> ReadBody(std::size_t limit);

  // The answer: Respond, or Begin, Write…, Finish. Each fails with http.client_gone, or with
  // http.misuse when it is out of order, a field is malformed, or `length` is not kept.
  virtual Result<void> Respond(int status, Headers headers, std::string body) = 0;
  // Without a length the body is chunked (until the connection ends, for HTTP/1.0).
  virtual Result<void> Begin(int status, Headers headers, std::optional<std::uint64_t> length) = 0;
  // What is written goes out at once. Blocks while the client is slow; each call may be of any
  // size.
  virtual Result<void> Write(std::string_view bytes) = 0;
  virtual Result<void> Finish() = 0;
  // True once Respond or Begin was called: it is too late for another answer.
  virtual bool answered() const = 0;

  // Set as soon as the client closes the connection or resets the stream, also while nothing is
  // read or written, and when the server ends. Callbacks run on the I/O thread and must be short. A
  // client that closes only its sending half counts as gone too, though it still gets its answer.
  virtual std::stop_token gone() const = 0;
  bool client_gone() const { return gone().stop_requested(); }

  // Answers 101 with these fields (which name the protocol: {"Upgrade", "tcp-tunnel"}) and turns
  // the connection into raw bytes. Fails with http.upgrade_refused, and has sent nothing, when the
  // request does not ask for an upgrade or came by HTTP/2. No other call may follow.
  virtual Result<std::unique_ptr<Stream>> Upgrade(Headers headers) = 0;
};

struct Answer {
  int status = 500;
  Headers headers;
  std::string body;
};

// How an error is put to the client; `request` is nullptr when none could be read. The HTTP status
// is that of the catalogue (FindError) unless the hook knows better.
using ErrorAnswer = std::function<Answer(const Status&, const Request*)>;

struct Handler {
  // True: runs on a thread of its own from a bounded pool. False: runs on the I/O thread when the
  // whole body has come (at most Limits::inline_body, else http.body_too_large); it must be short,
  // and may use ReadSome, ReadBody and Respond only.
  bool may_block = true;
  // A Status that is returned before an answer was begun is answered by the hook; after that the
  // connection (or the stream) is broken off, so that the client sees that the answer is not whole.
  std::function<Result<void>(Exchange&)> serve;
};

}  // namespace caisson::http
