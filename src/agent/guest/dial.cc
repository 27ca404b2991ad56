// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/dial.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "agent/guest/listeners.h"

namespace caisson::agent::guest {
namespace {

constexpr milliseconds kConnectTimeout{10'000};

// Bytes from one socket to another. Ends with the first end of either.
struct Way {
  EventSource* from = nullptr;
  EventSource* to = nullptr;
  std::string pending;
  std::size_t sent = 0;
  bool at_end = false;  // nothing more comes
  bool done = false;    // and the other one has been told so, or does not listen

  bool holds() const { return sent < pending.size(); }
  // The other one does not listen any more; whoever writes is told.
  void GiveUp() {
    if (done) return;
    done = at_end = true;
    ::shutdown(from->fd(), SHUT_RD);
    pending = {};
    sent = 0;
  }
};

class Relay final : public Disposable {
 public:
  Relay(Agent& agent, os::UniqueFd host, os::UniqueFd machine, std::string rest)
      : agent_(agent),
        counted_(agent, &Counts::streams),
        host_(agent.loop, std::move(host), [this](std::uint32_t events) { OnHost(events); }),
        machine_(agent.loop, std::move(machine), [this](std::uint32_t e) { OnMachine(e); }) {
    in_ = {.from = &host_, .to = &machine_, .pending = std::move(rest)};
    out_ = {.from = &machine_, .to = &host_, .pending = {}};
    Go();
  }

 private:
  void OnHost(std::uint32_t events) {
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
      host_gone_ = true;
      out_.GiveUp();
    }
    Go();
  }
  void OnMachine(std::uint32_t events) {
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
      machine_gone_ = true;
      in_.GiveUp();
    }
    Go();
  }

  void Go() {
    Move(in_);
    Move(out_);
    if (in_.done && out_.done) return agent_.Forget(this);
    Want(host_, in_, out_, host_gone_);
    Want(machine_, out_, in_, machine_gone_);
  }

  // One piece.
  void Move(Way& way) {
    if (way.done) return;
    if (!way.holds() && !way.at_end) Read(way);
    if (way.holds()) Write(way, std::string_view(way.pending).substr(way.sent));
    if (way.done || way.holds()) return;
    way.pending = {};
    way.sent = 0;
    if (!way.at_end) return;
    ::shutdown(way.to->fd(), SHUT_WR);
    way.done = true;
  }

  void Read(Way& way) {
    auto& buffer = agent_.buffer;
    const ssize_t count = ::read(way.from->fd(), buffer.data(), buffer.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) {
      way.at_end = true;
      return;
    }
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
    const std::size_t sent = Write(way, bytes);
    if (way.done || sent == bytes.size()) return;
    way.pending = bytes.substr(sent);
    way.sent = 0;
  }

  std::size_t Write(Way& way, std::string_view bytes) {
    const ssize_t count = ::send(way.to->fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN && errno != EINTR) {
      way.GiveUp();
      return 0;
    }
    const auto sent = static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    if (way.holds()) way.sent += sent;
    return sent;
  }

  void Want(EventSource& source, const Way& from_it, const Way& to_it, bool is_gone) {
    std::uint32_t events = 0;
    if (!from_it.at_end && !from_it.holds()) events |= EPOLLIN;
    if (to_it.holds()) events |= EPOLLOUT;
    // One that is gone would call on and on.
    source.Want(events != 0 || is_gone ? events : static_cast<std::uint32_t>(EPOLLHUP));
  }

  Agent& agent_;
  Counted counted_;
  EventSource host_;
  EventSource machine_;
  Way in_;
  Way out_;
  bool host_gone_ = false;
  bool machine_gone_ = false;
};

class DialOperation final : public Operation {
 public:
  DialOperation(HostConnection& connection, const DialRequest& request)
      : Operation(connection),
        port_(request.port),
        candidates_(Candidates(request)),
        timeout_(connection.agent().loop, [this] { TryNext(); }) {
    std::ranges::reverse(candidates_);  // the next one is the last
    TryNext();
  }

 private:
  void TryNext() {
    timeout_.Clear();
    connection_.agent().loop.Retire(socket_);
    while (!candidates_.empty()) {
      const SocketAddress address = candidates_.back();
      candidates_.pop_back();
      os::UniqueFd fd(
          ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const auto* where = reinterpret_cast<const sockaddr*>(&address.storage);
      if (!fd.valid()) continue;
      if (::connect(fd.get(), where, address.size) != 0 && errno != EINPROGRESS) continue;
      socket_ = std::make_unique<EventSource>(connection_.agent().loop, std::move(fd),
                                              [this](std::uint32_t) { OnConnected(); });
      socket_->Want(EPOLLOUT);
      return timeout_.Set(kConnectTimeout);
    }
    connection_.Fail(
        {.kind = FailureKind::kNotListening,
         .message = "nothing listens on port " + std::to_string(port_) + " of the machine"});
  }

  void OnConnected() {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket_->fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return TryNext();
    Agent& agent = connection_.agent();
    connection_.Send(FrameType::kOk, {});
    std::string rest;
    os::UniqueFd host = connection_.Release(rest);
    agent.Keep(std::make_unique<Relay>(agent, std::move(host), socket_->Release(), rest));
  }

  std::uint16_t port_;
  std::vector<SocketAddress> candidates_;
  std::unique_ptr<EventSource> socket_;
  Timer timeout_;
};

}  // namespace

std::unique_ptr<Operation> BeginDial(HostConnection& connection, const DialRequest& request) {
  return std::make_unique<DialOperation>(connection, request);
}

}  // namespace caisson::agent::guest
