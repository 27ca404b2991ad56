// SPDX-License-Identifier: Apache-2.0
#include "machine/firecracker/hybrid_vsock.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

namespace caisson::machine::firecracker {
namespace {

using agent::guest::EventSource;

constexpr std::size_t kLongestAnswer = 32;

os::UniqueFd Connect(const std::string& path) {
  os::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (!socket.valid() || path.size() >= sizeof name.sun_path) return os::UniqueFd();
  path.copy(name.sun_path, path.size());
  // Of a Unix socket it is at once, or not at all.
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    return os::UniqueFd();
  }
  return socket;
}

bool IsOk(std::string_view line) {
  if (!line.starts_with("OK ") || line.size() < 4) return false;
  return line.find_first_not_of("0123456789", 3) == std::string_view::npos;
}

}  // namespace

HybridDialer::HybridDialer(agent::guest::Loop& loop, std::string socket, std::uint32_t port,
                           Take take, Patience patience)
    : loop_(loop),
      socket_(std::move(socket)),
      port_(port),
      take_(std::move(take)),
      patience_(patience),
      again_(loop, [this] { Begin(); }),
      late_(loop, [this] { Retry(); }) {}

void HybridDialer::Dial() {
  loop_.Retire(source_);
  late_.Clear();
  again_.Set(std::chrono::milliseconds(0));
}

void HybridDialer::Retry() {
  loop_.Retire(source_);
  late_.Clear();
  again_.Set(patience_.pause);
}

void HybridDialer::Begin() {
  os::UniqueFd socket = Connect(socket_);
  const std::string command = "CONNECT " + std::to_string(port_) + "\n";
  if (!socket.valid() || ::send(socket.get(), command.data(), command.size(), MSG_NOSIGNAL) !=
                             static_cast<ssize_t>(command.size())) {
    return Retry();
  }
  line_.clear();
  source_ =
      std::make_unique<EventSource>(loop_, std::move(socket), [this](std::uint32_t) { Read(); });
  source_->Want(EPOLLIN);
  late_.Set(patience_.answer);
}

// What comes after the line is the guest's, and stays in the socket.
void HybridDialer::Read() {
  std::array<char, kLongestAnswer> bytes{};
  const ssize_t n = ::recv(source_->fd(), bytes.data(), bytes.size(), MSG_PEEK);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return Retry();  // nobody listens there yet
  const std::string_view seen(bytes.data(), static_cast<std::size_t>(n));
  const std::size_t end = seen.find('\n');
  const bool is_whole = end != std::string_view::npos;
  line_ += seen.substr(0, end);
  (void)!::recv(source_->fd(), bytes.data(), is_whole ? end + 1 : seen.size(), 0);
  if (!is_whole && line_.size() < kLongestAnswer) return;
  if (!is_whole || !IsOk(line_)) return Retry();
  late_.Clear();
  os::UniqueFd stream = source_->Release();
  loop_.Retire(source_);
  take_(std::move(stream));
}

}  // namespace caisson::machine::firecracker
