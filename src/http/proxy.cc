// SPDX-License-Identifier: Apache-2.0
#include "http/proxy.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "errors/http.h"
#include "http/chunks.h"
#include "http/head.h"
#include "http/io_thread.h"
#include "os/syscall_error.h"

namespace caisson::http {
namespace {

constexpr std::size_t kBlock = 64 << 10;
constexpr std::size_t kMostHead = 64 << 10;
constexpr std::size_t kMostFields = 256;
constexpr int kMostInterim = 16;  // answers of 1xx before the real one

std::unexpected<Status> Upstream(std::string message) {
  return Fail(errors::kHttpUpstream, std::move(message));
}

// The blocking side of a socket to a guest. Another thread may Shut it to end what blocks.
class Peer {
 public:
  explicit Peer(os::UniqueFd socket) : socket_(std::move(socket)) {}

  Result<void> Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        Await(POLLOUT, std::chrono::milliseconds(-1));
        continue;
      }
      if (sent < 0) return Upstream("the connection to the port broke: " + os::ErrnoText(errno));
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return {};
  }

  // 0 at the end; http.upstream_timed_out after `wait` (negative: never).
  Result<std::size_t> Receive(std::span<char> into, std::chrono::milliseconds wait) {
    while (true) {
      const ssize_t got = recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) {
        return Upstream("the connection to the port broke: " + os::ErrnoText(errno));
      }
      if (!Await(POLLIN, wait)) {
        return Fail(errors::kHttpUpstreamTimedOut, "the port gave no answer in time");
      }
    }
  }

  void EndSending() { shutdown(socket_.get(), SHUT_WR); }
  void Shut() { shutdown(socket_.get(), SHUT_RDWR); }
  // Both directions of the other side are over.
  bool IsOver() const {
    pollfd watched{socket_.get(), 0, 0};
    return poll(&watched, 1, 0) > 0 && (watched.revents & (POLLHUP | POLLERR)) != 0;
  }

 private:
  bool Await(short what, std::chrono::milliseconds wait) {
    pollfd watched{socket_.get(), what, 0};
    return poll(&watched, 1, static_cast<int>(wait.count())) != 0;
  }

  const os::UniqueFd socket_;
};

// Bytes from the guest, parsed.
class Reader {
 public:
  explicit Reader(Peer& peer) : peer_(peer) {}

  std::string_view buffered() const { return std::string_view(buffer_).substr(begin_); }
  void Consume(std::size_t bytes) { begin_ += bytes; }

  // False at the end of the stream.
  Result<bool> More(std::chrono::milliseconds wait) {
    buffer_.erase(0, begin_);
    begin_ = 0;
    const std::size_t size = buffer_.size();
    buffer_.resize(size + kBlock);
    const auto got = peer_.Receive({buffer_.data() + size, kBlock}, wait);
    buffer_.resize(size + got.value_or(0));
    if (!got) return Fail(got.error());
    return *got > 0;
  }

  Result<ResponseHead> Head(std::chrono::milliseconds wait, bool of_head_request) {
    const auto until = std::chrono::steady_clock::now() + wait;
    std::size_t scanned = 0;
    while (true) {
      const std::size_t size = FindHeadEnd(buffered(), scanned);
      if (size > kMostHead || (size == 0 && buffered().size() > kMostHead)) {
        return Upstream("the answer of the port has a header that is too large");
      }
      if (size > 0) {
        auto head = ParseResponseHead(buffered().substr(0, size), kMostFields, of_head_request);
        if (!head) return Upstream("the answer of the port is malformed: " + head.error().message);
        Consume(size);
        return head;
      }
      scanned = buffered().size();
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          until - std::chrono::steady_clock::now());
      CAISSON_ASSIGN(const bool more, More(std::max(left, std::chrono::milliseconds(0))));
      if (!more) return Upstream("the port closed the connection without an answer");
    }
  }

 private:
  Peer& peer_;
  std::string buffer_;
  std::size_t begin_ = 0;
};

bool IsHopByHop(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "Connection", "Keep-Alive",          "Proxy-Connection", "Proxy-Authenticate",
      "TE",         "Proxy-Authorization", "Trailer",          "Transfer-Encoding",
      "Upgrade",    "HTTP2-Settings"};
  return std::ranges::any_of(kNames, [&](auto other) { return EqualsIgnoringCase(name, other); });
}

bool IsWithheld(const Request& request, const ProxyOptions& options, std::string_view name) {
  static constexpr std::string_view kNames[] = {"Host", "Authorization", "X-Api-Key",
                                                "Content-Length", "Expect"};
  return IsHopByHop(name) || request.headers.HasToken("Connection", name) ||
         std::ranges::any_of(kNames, [&](auto other) { return EqualsIgnoringCase(name, other); }) ||
         std::ranges::any_of(options.drop_headers,
                             [&](const auto& other) { return EqualsIgnoringCase(name, other); });
}

bool AsksForUpgrade(const Request& request) {
  return request.version == 11 && request.headers.HasToken("Connection", "Upgrade") &&
         request.headers.Count("Upgrade") == 1 && request.body_length == 0u;
}

bool HasBody(const Request& request) { return request.body_length != 0u; }

std::string HeadForGuest(const Request& request, const ProxyOptions& options) {
  std::string head =
      fmt::format("{} {} HTTP/1.1\r\nHost: localhost:{}\r\n", request.method,
                  options.target.empty() ? request.target : options.target, options.port);
  const auto into = std::back_inserter(head);
  for (const Field& field : request.headers) {
    if (IsWithheld(request, options, field.name)) continue;
    fmt::format_to(into, "{}: {}\r\n", field.name, field.value);
  }
  if (AsksForUpgrade(request)) {
    fmt::format_to(into, "Connection: Upgrade\r\nUpgrade: {}\r\n",
                   *request.headers.Find("Upgrade"));
  } else {
    head += "Connection: close\r\n";
  }
  if (!request.body_length) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (HasBody(request) || request.headers.Count("Content-Length") > 0) {
    fmt::format_to(into, "Content-Length: {}\r\n", *request.body_length);
  }
  head += "\r\n";
  return head;
}

// Sends the body of the client to the guest. Ends quietly when the guest takes no more: it may
// answer all the same.
void SendBody(Exchange& exchange, Peer& peer) {
  const bool chunked = !exchange.request().body_length;
  std::vector<char> block(kBlock);
  while (true) {
    const auto got = exchange.ReadSome(block);
    if (!got) return peer.Shut();  // a body that is not whole must not look like one
    if (*got == 0) break;
    const std::string_view bytes(block.data(), *got);
    if (chunked && !peer.Send(fmt::format("{:x}\r\n", bytes.size()))) return;
    if (!peer.Send(bytes) || (chunked && !peer.Send("\r\n"))) return;
  }
  if (chunked) (void)peer.Send("0\r\n\r\n");
}

Headers HeadersForClient(const ResponseHead& head) {
  Headers headers;
  for (const Field& field : head.headers) {
    const bool withheld = IsHopByHop(field.name) ||
                          head.headers.HasToken("Connection", field.name) ||
                          EqualsIgnoringCase(field.name, "Content-Length");
    if (!withheld) headers.Add(field.name, field.value);
  }
  return headers;
}

std::optional<std::uint64_t> LengthForClient(const ResponseHead& head, bool of_head_request) {
  const Framing& framing = head.framing;
  if (framing.body == Framing::Body::kLength) return framing.length;
  // A HEAD answer tells the length of what GET would give.
  if (of_head_request && head.headers.Count("Content-Length") > 0) return framing.length;
  if (framing.body == Framing::Body::kNone) return 0;
  return std::nullopt;
}

Result<void> CopyLength(Exchange& exchange, Reader& reader, std::uint64_t left) {
  while (left > 0) {
    if (reader.buffered().empty()) {
      CAISSON_ASSIGN(const bool more, reader.More(std::chrono::milliseconds(-1)));
      if (!more) return Upstream("the port closed the connection amid its answer");
    }
    const std::string_view piece =
        reader.buffered().substr(0, std::min<std::uint64_t>(left, reader.buffered().size()));
    CAISSON_TRY(exchange.Write(piece));
    left -= piece.size();
    reader.Consume(piece.size());
  }
  return exchange.Finish();
}

Result<void> CopyChunks(Exchange& exchange, Reader& reader) {
  ChunkDecoder chunks;
  while (!chunks.done()) {
    const auto step = chunks.Next(reader.buffered(), kBlock);
    if (!step) return Upstream("the answer of the port is malformed: " + step.error().message);
    if (step->consumed == 0) {
      CAISSON_ASSIGN(const bool more, reader.More(std::chrono::milliseconds(-1)));
      if (!more) return Upstream("the port closed the connection amid its answer");
      continue;
    }
    if (!step->data.empty()) CAISSON_TRY(exchange.Write(step->data));
    reader.Consume(step->consumed);
  }
  return exchange.Finish();
}

Result<void> CopyUntilClose(Exchange& exchange, Reader& reader) {
  while (true) {
    if (!reader.buffered().empty()) CAISSON_TRY(exchange.Write(reader.buffered()));
    reader.Consume(reader.buffered().size());
    CAISSON_ASSIGN(const bool more, reader.More(std::chrono::milliseconds(-1)));
    if (!more) return exchange.Finish();
  }
}

Result<void> CopyAnswer(Exchange& exchange, Reader& reader, const ResponseHead& head) {
  CAISSON_TRY(exchange.Begin(head.status, HeadersForClient(head),
                             LengthForClient(head, exchange.request().method == "HEAD")));
  switch (head.framing.body) {
    case Framing::Body::kNone:
      return exchange.Finish();
    case Framing::Body::kLength:
      return CopyLength(exchange, reader, head.framing.length);
    case Framing::Body::kChunked:
      return CopyChunks(exchange, reader);
    default:
      return CopyUntilClose(exchange, reader);
  }
}

// Both ways between `client` and `peer`; `ahead` came from the peer already.
Result<void> RelayBoth(Stream& client, Peer& peer, std::string_view ahead) {
  const SignalsBlocked blocked;
  std::thread up([&] {
    std::vector<char> block(kBlock);
    while (true) {
      const auto got = client.Read(block);
      if (!got) return peer.Shut();
      if (*got == 0) return peer.EndSending();
      if (!peer.Send({block.data(), *got})) return;
    }
  });
  const auto down = [&]() -> Result<void> {
    if (!ahead.empty()) CAISSON_TRY(client.Write(ahead));
    std::vector<char> block(kBlock);
    while (true) {
      CAISSON_ASSIGN(const std::size_t got, peer.Receive(block, std::chrono::milliseconds(-1)));
      if (got == 0) break;
      CAISSON_TRY(client.Write({block.data(), got}));
    }
    return client.CloseWrite();
  };
  Result<void> result = down();
  if (!result || peer.IsOver()) {
    // Nothing that the client may still send can arrive anywhere.
    peer.Shut();
    client.EndReading();
  }
  up.join();
  return result;
}

Result<void> ProxyUpgrade(Exchange& exchange, Peer& peer, Reader& reader,
                          const ResponseHead& head) {
  const std::string* protocol = head.headers.Find("Upgrade");
  if (!AsksForUpgrade(exchange.request()) || !protocol) {
    return Upstream("the port answered 101 to a request that did not ask for it");
  }
  Headers headers = HeadersForClient(head);
  headers.Set("Upgrade", *protocol);
  CAISSON_ASSIGN(const auto stream, exchange.Upgrade(std::move(headers)));
  return RelayBoth(*stream, peer, reader.buffered());
}

Result<void> PassAnswer(Exchange& exchange, Peer& peer, Reader& reader,
                        const ProxyOptions& options) {
  const bool of_head_request = exchange.request().method == "HEAD";
  for (int interim = 0; interim < kMostInterim; ++interim) {
    CAISSON_ASSIGN(const ResponseHead head, reader.Head(options.head_timeout, of_head_request));
    if (head.status == 101) return ProxyUpgrade(exchange, peer, reader, head);
    if (head.status >= 200) return CopyAnswer(exchange, reader, head);
  }
  return Upstream("the port never comes to its final answer");
}

}  // namespace

Result<void> ProxyTo(Exchange& exchange, os::UniqueFd upstream, const ProxyOptions& options) {
  if (!std::ranges::all_of(options.target, [](char c) { return c > 0x20 && c < 0x7f; })) {
    return Fail(errors::kHttpMisuse, "the target for the port is not encoded");
  }
  Peer peer(std::move(upstream));
  const std::stop_callback gone(exchange.gone(), [&] { peer.Shut(); });
  CAISSON_TRY(peer.Send(HeadForGuest(exchange.request(), options)));
  std::thread sender;
  if (HasBody(exchange.request())) {
    const SignalsBlocked blocked;
    sender = std::thread([&] { SendBody(exchange, peer); });
  }
  Reader reader(peer);
  Result<void> result = PassAnswer(exchange, peer, reader, options);
  peer.Shut();
  if (sender.joinable()) {
    exchange.EndReading();
    sender.join();
  }
  return result;
}

Result<void> Relay(Stream& client, os::UniqueFd upstream) {
  Peer peer(std::move(upstream));
  return RelayBoth(client, peer, {});
}

}  // namespace caisson::http
