// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/host_streams.h"

#include <sys/epoll.h>
#include <sys/socket.h>
// After sys/socket.h, whose types it needs.
#include <linux/vm_sockets.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/guest/agent.h"

namespace caisson::agent::guest {
namespace {

constexpr milliseconds kAcceptAgain{100};
constexpr int kBacklog = 8;

// A program of the machine that connects to its own machine has another number.
bool IsHost(const sockaddr_storage& peer) {
  if (peer.ss_family != AF_VSOCK) return true;
  sockaddr_vm name{};
  std::memcpy(&name, &peer, sizeof name);
  return name.svm_cid == VMADDR_CID_HOST;
}

}  // namespace

std::unique_ptr<ChannelPump> ServeChannels(Agent& agent, os::UniqueFd stream, StreamKind kind,
                                           std::function<void()> on_broken) {
  return std::make_unique<ChannelPump>(
      agent.loop, Channels::Side::kAgent, std::move(stream),
      PumpCallbacks{.on_greeting = [&agent](std::uint64_t) { agent.Seal(); },
                    .on_open =
                        [&agent](os::UniqueFd socket) {
                          agent.connections.push_back(
                              std::make_unique<HostConnection>(agent, std::move(socket)));
                        },
                    .on_broken = std::move(on_broken)},
      kind);
}

os::UniqueFd ListenOnVsock(std::uint32_t port) {
  os::UniqueFd socket(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_vm name{};
  name.svm_family = AF_VSOCK;
  name.svm_cid = VMADDR_CID_ANY;
  name.svm_port = port;
  if (!socket.valid() ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return os::UniqueFd();
  }
  return socket;
}

HostStreams::HostStreams(Agent& agent, os::UniqueFd listener)
    : agent_(agent),
      source_(agent.loop, std::move(listener), [this](std::uint32_t) { Accept(); }),
      again_(agent.loop, [this] { source_.Want(EPOLLIN); }) {
  source_.Want(EPOLLIN);
}

void HostStreams::Accept() {
  for (;;) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    os::UniqueFd stream(::accept4(source_.fd(), reinterpret_cast<sockaddr*>(&peer), &size,
                                  SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (stream.valid()) {
      if (!IsHost(peer)) continue;
      Drop();
      pump_ = ServeChannels(agent_, std::move(stream), StreamKind::kConnection, [this] { Drop(); });
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED || errno == ECONNRESET) continue;
    if (errno == EAGAIN) return;
    source_.Want(0);  // out of descriptors or memory
    return again_.Set(kAcceptAgain);
  }
}

// What was asked through it is cancelled: the sockets of its channels are closed with it.
void HostStreams::Drop() {
  if (pump_ != nullptr) {
    agent_.loop.Dispose(std::make_unique<Retired<ChannelPump>>(std::move(pump_)));
  }
}

}  // namespace caisson::agent::guest
