// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/host_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "agent/guest/agent.h"

namespace caisson::agent::guest {
namespace {

constexpr std::size_t kReadBytes = 128u << 10;
constexpr int kReadsPerTurn = 32;
// For a host that does not close its end.
constexpr milliseconds kLinger{10'000};

}  // namespace

void Operation::OnFrame(const Frame& frame) {
  connection_.Fail({.kind = FailureKind::kBadRequest,
                    .message = "a frame of type " + std::to_string(static_cast<int>(frame.type)) +
                               " has no meaning in this operation"});
}

HostConnection::HostConnection(Agent& agent, os::UniqueFd fd) : agent_(agent) {
  const int bytes = kSocketBytes;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  source_ = std::make_unique<EventSource>(agent.loop, std::move(fd),
                                          [this](std::uint32_t events) { OnEvents(events); });
  source_->Want(EPOLLIN);
}

HostConnection::~HostConnection() = default;

void HostConnection::OnEvents(std::uint32_t events) {
  // The host is gone: what it wanted is cancelled, whatever of it is still unread.
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return Close();
  if ((events & EPOLLOUT) != 0) {
    FlushOut();
    if (!congested() && operation_ != nullptr) operation_->OnSent();
  }
  if ((events & EPOLLIN) != 0 && !closed_) Read();
  WantWhatIsDue();
}

// Several times, but so that others have their turn.
void HostConnection::Read() {
  for (int i = 0; i < kReadsPerTurn && !paused_ && !closed_; ++i) {
    if (!ReadOnce()) return;
  }
}

// Whether there may be more at once.
bool HostConnection::ReadOnce() {
  if (finished_) {  // the host has not heard yet that it is over
    reader_.TakeRest();
    payload_left_ = 0;
  }
  if (payload_left_ > 0) return ReadPayload();
  const bool stops_at_payload = operation_ != nullptr && operation_->ReadsPayload(FrameType::kData);
  std::span<char> room = reader_.Room(kReadBytes);
  if (stops_at_payload) {
    room = room.first(std::clamp<std::size_t>(reader_.Missing(), 1, room.size()));
  }
  const ssize_t count = ::read(source_->fd(), room.data(), room.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (count <= 0) {
    Close();
    return false;
  }
  reader_.Filled(static_cast<std::size_t>(count));
  if (stops_at_payload) payload_left_ = reader_.TakeHeader(FrameType::kData).value_or(0);
  if (!finished_ && payload_left_ == 0) Dispatch();
  return stops_at_payload;
}

bool HostConnection::ReadPayload() {
  const ssize_t count = operation_->ReadPayload(source_->fd(), payload_left_);
  if (count > 0) {
    payload_left_ -= static_cast<std::size_t>(count);
    return true;
  }
  if (count == 0 || (errno != EAGAIN && errno != EINTR)) Close();
  return false;
}

void HostConnection::Dispatch() {
  while (!paused_ && !finished_ && !closed_) {
    Frame frame;
    switch (reader_.Next(frame)) {
      case FrameReader::State::kMore:
        return;
      case FrameReader::State::kBroken:
        return Fail({.kind = FailureKind::kBadRequest, .message = "this is no frame"});
      case FrameReader::State::kFrame:
        break;
    }
    if (operation_ == nullptr) {
      auto operation = BeginOperation(*this, frame);
      if (!finished_ && !closed_) operation_ = std::move(operation);
    } else {
      operation_->OnFrame(frame);
    }
  }
}

void HostConnection::Send(FrameType type, std::string_view payload) {
  if (finished_ || closed_) return;
  const FrameHeader header = MakeFrameHeader(type, payload.size());
  std::size_t sent = 0;
  if (!congested()) {
    std::array<iovec, 2> pieces{iovec{const_cast<char*>(header.bytes), kFrameHeaderBytes},
                                iovec{const_cast<char*>(payload.data()), payload.size()}};
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    const ssize_t count = ::sendmsg(source_->fd(), &message, MSG_NOSIGNAL);
    // A broken connection tells so by an event.
    if (count > 0) sent = static_cast<std::size_t>(count);
    if (sent == kFrameHeaderBytes + payload.size()) return;
  }
  if (sent < kFrameHeaderBytes) out_.append(header.bytes + sent, kFrameHeaderBytes - sent);
  out_ += payload.substr(sent - std::min(sent, kFrameHeaderBytes));
  WantWhatIsDue();
}

void HostConnection::SendLater(FrameType type, std::string_view payload) {
  if (finished_ || closed_) return;
  out_.append(MakeFrameHeader(type, payload.size()).bytes, kFrameHeaderBytes);
  out_ += payload;
  WantWhatIsDue();
}

void HostConnection::FlushOut() {
  const std::string_view rest = std::string_view(out_).substr(sent_);
  const ssize_t count = ::send(source_->fd(), rest.data(), rest.size(), MSG_NOSIGNAL);
  if (count > 0) sent_ += static_cast<std::size_t>(count);
  if (congested()) return;
  out_ = {};
  sent_ = 0;
  if (finished_) ::shutdown(source_->fd(), SHUT_WR);
}

void HostConnection::PauseInput(bool pause) {
  if (paused_ == pause) return;
  paused_ = pause;
  if (!pause) Dispatch();
  WantWhatIsDue();
}

void HostConnection::WantWhatIsDue() {
  if (closed_) return;
  std::uint32_t events = EPOLLHUP;
  if (!paused_ || finished_) events |= EPOLLIN;
  if (congested()) events |= EPOLLOUT;
  source_->Want(events);
}

void HostConnection::Finish() {
  if (std::exchange(finished_, true)) return;
  if (!congested()) ::shutdown(source_->fd(), SHUT_WR);
  linger_ = std::make_unique<Timer>(agent_.loop, [this] { Close(); });
  linger_->Set(kLinger);
  agent_.loop.Dispose(std::make_unique<Retired<Operation>>(std::move(operation_)));
  WantWhatIsDue();
}

void HostConnection::Fail(const Failure& failure) {
  SendMessage(FrameType::kFailed, failure);
  Finish();
}

os::UniqueFd HostConnection::Release(std::string& rest) {
  rest = reader_.TakeRest();
  os::UniqueFd fd = source_->Release();
  finished_ = true;
  Close();
  return fd;
}

void HostConnection::Close() {
  if (std::exchange(closed_, true)) return;
  source_->Want(0);
  agent_.Forget(this);
}

}  // namespace caisson::agent::guest
