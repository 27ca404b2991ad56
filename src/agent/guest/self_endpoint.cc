// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/self_endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "agent/guest/agent.h"
#include "agent/guest/listeners.h"

namespace caisson::agent::guest {
namespace {

constexpr std::size_t kMostHead = 8192;
constexpr std::size_t kMostReason = 1024;
constexpr std::uint32_t kMostConnections = 32;
constexpr milliseconds kTimeout{10'000};

int HexDigit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

std::string Unquote(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size() && plain.size() < kMostReason; ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      plain += static_cast<char>(16 * HexDigit(text[i + 1]) + HexDigit(text[i + 2]));
      i += 2;
    } else {
      plain += text[i] == '+' ? ' ' : text[i];
    }
  }
  return plain;
}

// The value of a query's member; empty when it has none.
std::string Member(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view part = query.substr(0, end);
    if (part.size() > name.size() && part.starts_with(name) && part[name.size()] == '=') {
      return Unquote(part.substr(name.size() + 1));
    }
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return {};
}

SelfAnswer Refuse(int status, std::string reason, std::string_view why) {
  return {.status = status,
          .reason = std::move(reason),
          .body = "{\"status\":\"fail\",\"data\":\"" + std::string(why) + "\"}",
          .request = {}};
}

class SelfConnection final : public Disposable {
 public:
  SelfConnection(Agent& agent, std::uint32_t& count, os::UniqueFd fd)
      : agent_(agent),
        count_(count),
        source_(agent.loop, std::move(fd), [this](std::uint32_t) { Read(); }),
        timeout_(agent.loop, [this] { agent_.Forget(this); }) {
    ++count_;
    source_.Want(EPOLLIN);
    timeout_.Set(kTimeout);
  }
  ~SelfConnection() override { --count_; }

 private:
  void Read() {
    std::array<char, 2048> piece;
    const ssize_t count = ::read(source_.fd(), piece.data(), piece.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return agent_.Forget(this);
    if (answered_) return;  // what comes behind the head is not needed
    head_.append(piece.data(), static_cast<std::size_t>(count));
    const std::size_t end = head_.find("\r\n\r\n");
    if (end != std::string::npos) {
      Answer(AnswerSelf(std::string_view(head_).substr(0, end + 4)));
    } else if (head_.size() > kMostHead) {
      Answer(Refuse(431, "Request Header Fields Too Large", "the request head is too long"));
    }
  }

  // Short enough to fit into the socket at once.
  void Answer(const SelfAnswer& answer) {
    answered_ = true;
    if (answer.request) agent_.watchers.TellSelf(*answer.request);
    const std::string text = "HTTP/1.1 " + std::to_string(answer.status) + " " + answer.reason +
                             "\r\nContent-Type: application/json\r\nConnection: close\r\n"
                             "Content-Length: " +
                             std::to_string(answer.body.size()) + "\r\n\r\n" + answer.body;
    ::send(source_.fd(), text.data(), text.size(), MSG_NOSIGNAL);
    ::shutdown(source_.fd(), SHUT_WR);
  }

  Agent& agent_;
  std::uint32_t& count_;
  EventSource source_;
  Timer timeout_;
  std::string head_;
  bool answered_ = false;
};

class Endpoint final : public SelfEndpoint {
 public:
  Endpoint(Agent& agent, os::UniqueFd listener)
      : agent_(agent),
        source_(agent.loop, std::move(listener), [this](std::uint32_t) { Accept(); }),
        again_(agent.loop, [this] { source_.Want(EPOLLIN); }) {
    source_.Want(EPOLLIN);
  }

 private:
  void Accept() {
    os::UniqueFd fd(::accept4(source_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid() && count_ < kMostConnections) {
      agent_.Keep(std::make_unique<SelfConnection>(agent_, count_, std::move(fd)));
    } else if (!fd.valid() && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      source_.Want(0);  // out of descriptors or memory
      again_.Set(milliseconds(100));
    }
  }

  Agent& agent_;
  std::uint32_t count_ = 0;
  EventSource source_;
  Timer again_;
};

}  // namespace

SelfAnswer AnswerSelf(std::string_view head) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const std::size_t method_end = line.find(' ');
  const std::size_t target_end = line.rfind(' ');
  if (method_end == std::string_view::npos || target_end <= method_end ||
      !line.substr(target_end + 1).starts_with("HTTP/1.")) {
    return Refuse(400, "Bad Request", "this is no HTTP/1.1 request");
  }
  const std::string_view target = line.substr(method_end + 1, target_end - method_end - 1);
  const std::size_t path_end = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, path_end);
  const bool pauses = path == "/self/pause";
  if (!pauses && path != "/self/delete") {
    return Refuse(404, "Not Found", "there are only /self/pause and /self/delete");
  }
  if (line.substr(0, method_end) != "POST") {
    return Refuse(405, "Method Not Allowed", "only POST is allowed");
  }
  const std::string_view query = target.substr(std::min(path_end + 1, target.size()));
  return {.status = 202,
          .reason = "Accepted",
          .body = std::string("{\"status\":\"success\",\"data\":{\"action\":\"") +
                  (pauses ? "pause" : "delete") + "\"}}",
          .request = SelfRequest{.action = pauses ? SelfAction::kPause : SelfAction::kDelete,
                                 .reason = Member(query, "reason")}};
}

Attempt<std::unique_ptr<SelfEndpoint>> SelfEndpoint::Listen(Agent& agent, std::uint16_t port) {
  os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Fail(FailureKind::kInternal, "make a socket for 127.0.0.1", errno);
  const SocketAddress address = SocketAddress::V4(htonl(INADDR_LOOPBACK), port);
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // The loopback interface may not be up yet.
  ::setsockopt(fd.get(), SOL_IP, IP_FREEBIND, &on, sizeof on);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 ||
      ::listen(fd.get(), kMostConnections) != 0) {
    return Fail(FailureKind::kInternal, "listen on 127.0.0.1:" + std::to_string(port), errno);
  }
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  agent.self_port = ntohs(bound.sin_port);
  return std::make_unique<Endpoint>(agent, std::move(fd));
}

}  // namespace caisson::agent::guest
