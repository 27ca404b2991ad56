// SPDX-License-Identifier: Apache-2.0
// For tests: a server with routes that exercise every way of reading and answering, and a client of
// raw bytes that shows exactly what goes over the wire.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "http/server.h"
#include "os/fd.h"

namespace caisson::http {

using std::chrono::milliseconds;

// What the handlers of the test server saw.
struct Seen {
  std::atomic<int> begun{0};         // handlers of /wait, /drip and /hold that have begun
  std::atomic<int> gone{0};          // of those, whose client went
  std::atomic<int> ended{0};         // all of the handlers that are over
  std::atomic<bool> release{false};  // lets /hold go on
  std::atomic<int> served{0};
  std::atomic<int> last_status{-1};
  std::atomic<bool> last_whole{false};
};

inline bool Eventually(const std::function<bool()>& holds,
                       milliseconds within = milliseconds(5000)) {
  const auto until = std::chrono::steady_clock::now() + within;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return true;
}

inline std::size_t NumberOf(const Request& request, std::string_view name, std::size_t otherwise) {
  const std::string* text = request.Query(name);
  return text ? std::stoull(*text) : otherwise;
}

// Writes `bytes` bytes of a pattern in blocks.
inline Result<void> WritePattern(Exchange& exchange, std::size_t bytes, std::size_t block_size) {
  std::string block(block_size, 'x');
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<char>('a' + i % 26);
  while (bytes > 0) {
    const std::size_t size = std::min(bytes, block.size());
    CAISSON_TRY(exchange.Write(std::string_view(block).substr(0, size)));
    bytes -= size;
  }
  return {};
}

inline Router TestRoutes(Seen& seen) {
  Router router;
  const auto counted = [&seen](const auto& serve) {
    return [&seen, serve](Exchange& exchange) -> Result<void> {
      auto result = serve(exchange);
      ++seen.ended;
      return result;
    };
  };
  const Headers text{{"Content-Type", "text/plain"}};
  router.Add("GET /small", {false, [text](Exchange& exchange) {
                              return exchange.Respond(200, text, "small\n");
                            }});
  router.Add("GET /pooled", {true, counted([text](Exchange& exchange) {
                               return exchange.Respond(200, text, "pooled\n");
                             })});
  router.Add("GET /items/{name}", {false, [text](Exchange& exchange) {
                                     return exchange.Respond(
                                         200, text,
                                         std::string(exchange.request().Parameter("name")) + "\n");
                                   }});
  router.Add("POST /inline", {false, [text](Exchange& exchange) -> Result<void> {
                                CAISSON_ASSIGN(std::string body, exchange.ReadBody(1u << 20));
                                return exchange.Respond(200, text, std::move(body));
                              }});
  router.Add("POST /echo", {true, counted([text](Exchange& exchange) -> Result<void> {
                              CAISSON_ASSIGN(std::string body, exchange.ReadBody(4u << 20));
                              return exchange.Respond(200, text, std::move(body));
                            })});
  router.Add("PUT /count", {true, counted([text](Exchange& exchange) -> Result<void> {
                              std::vector<char> block(64 << 10);
                              std::size_t total = 0;
                              while (true) {
                                CAISSON_ASSIGN(const std::size_t got, exchange.ReadSome(block));
                                if (got == 0) break;
                                total += got;
                              }
                              return exchange.Respond(200, text, fmt::format("{}\n", total));
                            })});
  router.Add("POST /duplex", {true, counted([text](Exchange& exchange) -> Result<void> {
                                CAISSON_TRY(exchange.Begin(200, text, std::nullopt));
                                std::vector<char> block(64 << 10);
                                while (true) {
                                  CAISSON_ASSIGN(const std::size_t got, exchange.ReadSome(block));
                                  if (got == 0) return exchange.Finish();
                                  CAISSON_TRY(exchange.Write({block.data(), got}));
                                }
                              })});
  router.Add("GET /stream",
             {true, counted([text](Exchange& exchange) -> Result<void> {
                const Request& request = exchange.request();
                const std::size_t bytes = NumberOf(request, "bytes", 1000);
                const bool sized = request.Query("sized") != nullptr;
                CAISSON_TRY(exchange.Begin(
                    200, text, sized ? std::optional<std::uint64_t>(bytes) : std::nullopt));
                CAISSON_TRY(WritePattern(
                    exchange, bytes,
                    std::clamp<std::size_t>(NumberOf(request, "block", 64 << 10), 1, 1 << 20)));
                return exchange.Finish();
              })});
  router.Add("GET /drip", {true, counted([text, &seen](Exchange& exchange) -> Result<void> {
                             ++seen.begun;
                             CAISSON_TRY(exchange.Begin(200, text, std::nullopt));
                             while (!exchange.client_gone()) {
                               CAISSON_TRY(exchange.Write("drip\n"));
                               std::this_thread::sleep_for(milliseconds(10));
                             }
                             ++seen.gone;
                             return exchange.Finish();
                           })});
  router.Add("* /wait", {true, counted([text, &seen](Exchange& exchange) -> Result<void> {
                           std::mutex mutex;
                           std::condition_variable_any woken;
                           ++seen.begun;
                           std::unique_lock lock(mutex);
                           woken.wait_for(lock, exchange.gone(), std::chrono::seconds(20),
                                          [] { return false; });
                           if (exchange.client_gone()) ++seen.gone;
                           return exchange.Respond(200, text, "waited\n");
                         })});
  router.Add("GET /hold", {true, counted([text, &seen](Exchange& exchange) -> Result<void> {
                             ++seen.begun;
                             while (!seen.release && !exchange.client_gone()) {
                               std::this_thread::sleep_for(milliseconds(1));
                             }
                             return exchange.Respond(200, text, "held\n");
                           })});
  router.Add("GET /nothing", {true, counted([](Exchange&) -> Result<void> { return {}; })});
  router.Add("GET /cut", {true, counted([text](Exchange& exchange) -> Result<void> {
                            CAISSON_TRY(exchange.Begin(200, text, std::nullopt));
                            return exchange.Write("half of it");
                          })});
  router.Add("GET /short", {true, counted([text](Exchange& exchange) -> Result<void> {
                              CAISSON_TRY(exchange.Begin(200, text, 100));
                              CAISSON_TRY(exchange.Write("less"));
                              return exchange.Finish();
                            })});
  router.Add("GET /split", {true, counted([](Exchange& exchange) -> Result<void> {
                              return exchange.Respond(200, {{"X-A", "1\r\nX-Evil: 1"}}, "");
                            })});
  router.Add("POST /tunnel", {true, counted([&seen](Exchange& exchange) -> Result<void> {
                                ++seen.begun;
                                CAISSON_ASSIGN(const auto stream,
                                               exchange.Upgrade({{"Upgrade", "tcp-tunnel"}}));
                                std::vector<char> block(64 << 10);
                                while (true) {
                                  CAISSON_ASSIGN(const std::size_t got, stream->Read(block));
                                  if (got == 0) break;
                                  CAISSON_TRY(stream->Write({block.data(), got}));
                                }
                                CAISSON_TRY(stream->Write("bye"));
                                return stream->CloseWrite();
                              })});
  return router;
}

struct TestServer {
  Seen seen;
  std::unique_ptr<Server> server;

  explicit TestServer(Limits limits = {}, std::vector<Listener> listeners = {{"127.0.0.1:0", {}}},
                      std::size_t io_threads = 1) {
    Options options;
    options.listeners = std::move(listeners);
    options.limits = limits;
    options.io_threads = io_threads;
    options.served = [this](const Served& served) {
      seen.last_status = served.status;
      seen.last_whole = served.whole;
      ++seen.served;
    };
    auto started = Server::Start(std::move(options), TestRoutes(seen));
    if (started) {
      server = std::move(*started);
    } else {
      fmt::print(stderr, "{}\n", started.error().message);
      std::abort();
    }
  }
  std::uint16_t port(std::size_t listener = 0) const { return server->port(listener); }
};

// A connection on which a test sends what it likes.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port, int receive_buffer = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0) {
      setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    }
    const int on = 1;
    setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(port);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0;
  }
  explicit RawClient(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, path.data(), std::min(path.size(), sizeof(name.sun_path) - 1));
    connected_ = connect(socket_.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0;
  }

  bool connected() const { return connected_; }
  int fd() const { return socket_.get(); }
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void CloseWrite() { shutdown(socket_.get(), SHUT_WR); }
  void Close() { socket_.Reset(); }

  // More bytes into `received`; false at the end of the stream or after `wait`.
  bool More(milliseconds wait = milliseconds(5000)) {
    pollfd watched{socket_.get(), POLLIN, 0};
    if (poll(&watched, 1, static_cast<int>(wait.count())) <= 0) return false;
    char block[64 << 10];
    const ssize_t got = recv(socket_.get(), block, sizeof(block), 0);
    ended = got == 0;
    reset = got < 0;
    if (got <= 0) return false;
    received.append(block, static_cast<std::size_t>(got));
    return true;
  }
  // Everything until the server closes.
  const std::string& All(milliseconds wait = milliseconds(5000)) {
    while (More(wait)) {
    }
    return received;
  }
  // Waits for `text`; takes everything up to its end off `received`.
  std::string Until(std::string_view text) {
    std::size_t at;
    while ((at = received.find(text)) == std::string::npos) {
      if (!More()) return "(no \"" + std::string(text) + "\") " + std::exchange(received, {});
    }
    std::string taken = received.substr(0, at + text.size());
    received.erase(0, taken.size());
    return taken;
  }
  std::string Bytes(std::size_t count) {
    while (received.size() < count && More()) {
    }
    std::string taken = received.substr(0, count);
    received.erase(0, taken.size());
    return taken;
  }
  // One answer with a Content-Length: its status and body.
  std::pair<int, std::string> Answer() {
    head = Until("\r\n\r\n");
    if (!head.starts_with("HTTP/1.1 ")) return {0, head};
    const std::size_t at = head.find("Content-Length: ");
    const std::size_t length = at == std::string::npos ? 0 : std::stoul(head.substr(at + 16));
    return {std::stoi(head.substr(9, 3)), Bytes(length)};
  }
  std::pair<int, std::string> Get(std::string_view path) {
    Send(fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", path));
    return Answer();
  }

  std::string received;
  std::string head;
  bool ended = false;
  bool reset = false;

 private:
  os::UniqueFd socket_;
  bool connected_ = false;
};

}  // namespace caisson::http
