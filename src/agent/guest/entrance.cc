// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/entrance.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "agent/guest/agent.h"

namespace caisson::agent::guest {
namespace {

constexpr milliseconds kAcceptAgain{100};
constexpr milliseconds kLookAgain{3};
// Should who was to wake us have died. Of the machine's own clock, which stands still with it.
constexpr std::chrono::seconds kMostAsleep{60};
constexpr int kBacklog = 128;

}  // namespace

os::UniqueFd ListenAt(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return os::UniqueFd();
  }
  path.copy(address.sun_path, path.size());
  (void)::unlink(path.c_str());
  os::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid() ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return os::UniqueFd();
  }
  return socket;
}

Entrance::Entrance(Agent& agent, os::UniqueFd listener, std::string path)
    : agent_(agent),
      path_(std::move(path)),
      again_(agent.loop,
             [this] {
               if (!asleep()) source_->Want(EPOLLIN);
             }),
      look_(agent.loop, [this] { LookForWake(); }) {
  Begin(std::move(listener));
}

void Entrance::Begin(os::UniqueFd listener) {
  source_ = std::make_unique<EventSource>(agent_.loop, std::move(listener),
                                          [this](std::uint32_t) { Accept(); });
  source_->Want(EPOLLIN);
}

void Entrance::Accept() {
  for (;;) {
    os::UniqueFd fd(::accept4(source_->fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid()) {
      agent_.connections.push_back(std::make_unique<HostConnection>(agent_, std::move(fd)));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return;
    source_->Want(0);  // out of descriptors or memory
    return again_.Set(kAcceptAgain);
  }
}

Attempt<void> Entrance::LetGo(const HostConnection* asker) {
  if (path_.empty()) {
    return Fail(FailureKind::kBadRequest, "this agent's socket was handed to it");
  }
  if (agent_.counts.commands > 0 || agent_.counts.streams > 0) {
    return Fail(FailureKind::kBusy, std::to_string(agent_.counts.commands) + " commands and " +
                                        std::to_string(agent_.counts.streams) +
                                        " streams are open from outside");
  }
  ForgetAllBut(asker);
  again_.Clear();
  // Below gVisor the host's end of a socket that is closed may live a little longer: nobody shall
  // connect to it and wait.
  (void)::unlink(path_.c_str());
  agent_.loop.Retire(source_);
  until_ = Clock::now() + kMostAsleep;
  look_.Set(kLookAgain);
  return {};
}

void Entrance::ForgetAllBut(const HostConnection* one) {
  std::vector<HostConnection*> others;
  for (const auto& connection : agent_.connections) {
    if (connection.get() != one) others.push_back(connection.get());
  }
  for (HostConnection* connection : others) agent_.Forget(connection);
}

void Entrance::LookForWake() {
  ForgetAllBut(nullptr);  // who asked has its answer
  const std::string wake = path_ + ".wake";
  if (::access(wake.c_str(), F_OK) != 0 && Clock::now() < until_) return look_.Set(kLookAgain);
  os::UniqueFd listener = ListenAt(path_);
  if (!listener.valid()) return look_.Set(kAcceptAgain);
  (void)::unlink(wake.c_str());
  Begin(std::move(listener));
}

}  // namespace caisson::agent::guest
