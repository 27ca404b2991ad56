// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/name_streams.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "egress/gate/flow.h"

namespace caisson::egress::gate {
namespace {

constexpr std::size_t kMaxQuestion = 2048;
constexpr std::size_t kMostUnsent = 16u << 10;  // then no question is taken before some have gone
constexpr int kAcceptsAtOnce = 16;
constexpr int kReadsAtOnce = 2;

}  // namespace

struct NameStreams::Connection {
  os::UniqueFd fd;
  std::uint32_t machine = 0;
  std::uint16_t port = 0;
  Places<ConnectionPointer>::Place place;
  std::string in, out;
  std::size_t unanswered = 0;
  bool ended = false;  // no more questions will come
  std::optional<Loop::TimerId> timer;
  Lane lane() const { return {.rank = Rank::kShort, .party = machine}; }
  bool is_done() const { return ended && unanswered == 0 && out.empty(); }
};

NameStreams::~NameStreams() {
  for (const auto& connection : connections_.All()) Close(connection);
  loop_.Forget(listener_.get());
}

Result<void> NameStreams::Serve(os::UniqueFd listener) {
  listener_ = std::move(listener);
  return loop_.Watch(listener_.get(), {}, [this](std::uint32_t) { Accept(); });
}

void NameStreams::Accept() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    os::UniqueFd fd(::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from), &size,
                              SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      Begin(std::move(fd), ntohl(from.sin_addr.s_addr), ntohs(from.sin_port));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {  // no descriptor: later
      loop_.After(std::chrono::milliseconds(50), [this] { Accept(); });
    }
    return;
  }
  loop_.Soon({}, [this] { Accept(); });
}

void NameStreams::Begin(os::UniqueFd fd, std::uint32_t address, std::uint16_t port) {
  Machine* machine = machines_.Find(address);
  const bool has_room = connections_.CountOf(address) < kMaxOfMachine;
  if (machine != nullptr && has_room && connections_.size() >= most_) {
    if (const auto idlest = connections_.WhoGoes(address)) Close(*idlest);
  }
  if (machine == nullptr || !has_room || connections_.size() >= most_) {
    if (machine != nullptr) {
      machines_.Deny(*machine, {.kind = GateDenialKind::kLimit, .port = 53}, loop_.now());
    }
    return ResetOnClose(fd.get());
  }
  auto connection = std::make_shared<Connection>();
  connection->machine = address;
  connection->port = port;
  connection->fd = std::move(fd);
  if (!loop_.Watch(connection->fd.get(), connection->lane(),
                   [this, weak = std::weak_ptr(connection)](std::uint32_t events) {
                     if (const auto held = weak.lock()) Ready(held, events);
                   })) {
    return;
  }
  connection->place = connections_.Take(address, connection);
  Rest(connection);
}

// It has this long for its next question.
void NameStreams::Rest(const ConnectionPointer& connection) {
  if (connection->timer) loop_.Cancel(*connection->timer);
  connection->timer = loop_.After(kIdle, [this, weak = std::weak_ptr(connection)] {
    if (const auto held = weak.lock()) Close(held);
  });
}

void NameStreams::Close(const ConnectionPointer& closed) {
  const ConnectionPointer connection = closed;  // the argument may be what is in the table
  if (!connection->fd.valid()) return;
  if (connection->timer) loop_.Cancel(*connection->timer);
  loop_.Forget(connection->fd.get());
  connection->fd.Reset();
  connections_.Leave(connection->place);
}

void NameStreams::DropConnections(std::uint32_t machine) {
  for (const auto& connection : connections_.Of(machine)) Close(connection);
}

// It waits for one answer less.
NameStreams::ConnectionPointer NameStreams::Release(const std::weak_ptr<Connection>& connection) {
  auto held = connection.lock();
  if (held == nullptr || !held->fd.valid()) return nullptr;
  --held->unanswered;
  return held;
}

void NameStreams::Drop(const std::weak_ptr<Connection>& to) { (void)Release(to); }

void NameStreams::Answer(const std::weak_ptr<Connection>& to, std::string_view message) {
  const auto connection = Release(to);
  if (connection == nullptr) return;
  connection->out += static_cast<char>(message.size() >> 8);
  connection->out += static_cast<char>(message.size() & 0xff);
  connection->out += message;
  // Not at once: the caller may be reading this connection.
  loop_.Soon(connection->lane(), [this, connection] { Ready(connection, EPOLLOUT); });
}

void NameStreams::Ready(const ConnectionPointer& connection, std::uint32_t events) {
  if (!connection->fd.valid()) return;
  if ((events & EPOLLOUT) != 0 && !Write(*connection)) return Close(connection);
  if (!Read(connection)) Close(connection);
}

// False when it has ended. Answers go out later.
bool NameStreams::Read(const ConnectionPointer& connection) {
  for (int i = 0; i < kReadsAtOnce; ++i) {
    if (!TakeMessages(connection)) return false;
    if (connection->out.size() > kMostUnsent) return true;  // goes on when they have gone
    if (connection->ended) return connection->in.empty() && !connection->is_done();
    std::array<char, 4096> bytes;
    // The analyzer takes weak_ptr::lock for that of a mutex.
    // NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection)
    const ssize_t got = ::recv(connection->fd.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    connection->ended = got == 0;
    connection->in.append(bytes.data(), static_cast<std::size_t>(got));
  }
  loop_.Soon(connection->lane(), [this, connection] { Ready(connection, EPOLLIN); });
  return true;
}

bool NameStreams::TakeMessages(const ConnectionPointer& connection) {
  while (connection->in.size() >= 2 && connection->out.size() <= kMostUnsent) {
    const std::size_t size = std::size_t{static_cast<std::uint8_t>(connection->in[0])} << 8 |
                             static_cast<std::uint8_t>(connection->in[1]);
    if (size > kMaxQuestion) return false;
    if (connection->in.size() < size + 2) return true;
    const std::string message = connection->in.substr(2, size);
    connection->in.erase(0, size + 2);
    Rest(connection);
    connections_.Refresh(connection->place);
    ++connection->unanswered;
    if (!take_(
            message,
            {.machine = connection->machine, .port = connection->port, .connection = connection})) {
      return false;
    }
  }
  return true;
}

// False when it is broken.
bool NameStreams::Write(Connection& connection) {
  if (!connection.fd.valid()) return false;
  std::string& out = connection.out;
  while (!out.empty()) {
    const ssize_t sent = ::send(connection.fd.get(), out.data(), out.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    out.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace caisson::egress::gate
