// SPDX-License-Identifier: Apache-2.0
#include "agent/connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "errors/agent.h"
#include "os/syscall_error.h"

namespace caisson::agent {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kReadBytes = 64u << 10;

std::unexpected<Status> Lost(std::string_view what) {
  return Fail(errors::kAgentConnectionLost, "the connection to the machine's agent broke " +
                                                std::string(what) +
                                                "; what it was for may have been done in part");
}

// Until `deadline` or for good; 0 when it has passed.
short Poll(int fd, short events, const Connection::Deadline& deadline) {
  for (;;) {
    int wait = -1;
    if (deadline) {
      const auto left = std::chrono::ceil<milliseconds>(*deadline - Clock::now()).count();
      wait = static_cast<int>(std::clamp<std::int64_t>(left, 0, 86'400'000));
    }
    pollfd event{fd, events, 0};
    const int ready = ::poll(&event, 1, wait);
    if (ready > 0) return event.revents;
    if (ready == 0 && deadline && Clock::now() >= *deadline) return 0;
    if (ready < 0 && errno != EINTR) return POLLERR;
  }
}

ErrorCode CodeOf(FailureKind kind) {
  switch (kind) {
    case FailureKind::kInternal:
      return errors::kAgentFailed;
    case FailureKind::kBadRequest:
      return errors::kAgentBadRequest;
    case FailureKind::kNotFound:
      return errors::kAgentNotFound;
    case FailureKind::kNotAFile:
      return errors::kAgentNotAFile;
    case FailureKind::kNotADirectory:
      return errors::kAgentNotADirectory;
    case FailureKind::kNotEmpty:
      return errors::kAgentNotEmpty;
    case FailureKind::kRefused:
      return errors::kAgentRefused;
    case FailureKind::kNoSpace:
      return errors::kAgentNoSpace;
    case FailureKind::kUnreadable:
      return errors::kAgentFileFailed;
    case FailureKind::kStartFailed:
      return errors::kAgentStartFailed;
    case FailureKind::kNoProcess:
      return errors::kAgentNoProcess;
    case FailureKind::kProcessEnded:
      return errors::kAgentProcessEnded;
    case FailureKind::kInputFull:
      return errors::kAgentInputFull;
    case FailureKind::kNotAPty:
      return errors::kAgentNotAPty;
    case FailureKind::kEventsLost:
      return errors::kAgentEventsLost;
    case FailureKind::kLost:
      return errors::kAgentEndUnknown;
    case FailureKind::kNotListening:
      return errors::kAgentNotListening;
    case FailureKind::kBusy:
      return errors::kAgentBusy;
  }
  return errors::kAgentProtocol;
}

}  // namespace

std::unexpected<Status> FailureStatus(const Failure& failure) {
  return Fail(CodeOf(failure.kind), failure.message);
}

namespace {

// 0: for good.
void SetSendTimeout(int fd, milliseconds time) {
  const timeval value{.tv_sec = time.count() / 1000, .tv_usec = time.count() % 1000 * 1000};
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &value, sizeof value);
}

}  // namespace

// Sending blocks in the kernel, which so fills the socket as soon as there is any room; a poll for
// room returns only once most of it is empty.
Connection::Connection(os::UniqueFd fd, milliseconds patience)
    : fd_(std::move(fd)), patience_(patience) {
  ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) & ~O_NONBLOCK);
  SetSendTimeout(fd_.get(), patience);
  const int bytes = kSocketBytes;
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

void Connection::Shutdown() { ::shutdown(fd_.get(), SHUT_RDWR); }

namespace {

Result<void> CheckSize(FrameType type, std::string_view payload) {
  if (payload.size() <= MaxPayload(type)) return {};
  return Fail(errors::kAgentBadRequest, "a request to the machine's agent has " +
                                            std::to_string(payload.size()) + " bytes; at most " +
                                            std::to_string(MaxPayload(type)) + " are allowed");
}

}  // namespace

Result<void> Connection::Send(FrameType type, std::string_view payload) {
  CAISSON_TRY(CheckSize(type, payload));
  const std::lock_guard lock(sending_);
  const FrameHeader header = MakeFrameHeader(type, payload.size());
  unsent_.append(header.bytes, kFrameHeaderBytes);
  std::string_view rest = payload;
  while (!unsent_.empty() || !rest.empty()) {
    const std::size_t before = unsent_.size() + rest.size();
    CAISSON_TRY(SendOnce(rest, 0));
    if (unsent_.size() + rest.size() == before) return NoAnswer();
  }
  return {};
}

Result<bool> Connection::TrySend(FrameType type, std::string_view payload) {
  CAISSON_TRY(CheckSize(type, payload));
  const std::lock_guard lock(sending_);
  std::string_view nothing;
  if (!unsent_.empty()) CAISSON_TRY(SendOnce(nothing, MSG_DONTWAIT));
  if (!unsent_.empty()) return false;
  const FrameHeader header = MakeFrameHeader(type, payload.size());
  unsent_.append(header.bytes, kFrameHeaderBytes);
  CAISSON_TRY(SendOnce(payload, MSG_DONTWAIT));
  unsent_ += payload;
  return true;
}

Result<bool> Connection::Flush() {
  const std::lock_guard lock(sending_);
  std::string_view nothing;
  if (!unsent_.empty()) CAISSON_TRY(SendOnce(nothing, MSG_DONTWAIT));
  return unsent_.empty();
}

// What is unsent, and then `rest`, as far as goes; with MSG_DONTWAIT without waiting.
Result<void> Connection::SendOnce(std::string_view& rest, int flags) {
  std::array<iovec, 2> pieces{iovec{unsent_.data(), unsent_.size()},
                              iovec{const_cast<char*>(rest.data()), rest.size()}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  ssize_t count = 0;
  do {
    count = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | flags);
  } while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EAGAIN) return {};
  if (count < 0) return Lost("while something was sent to it");
  const auto sent = static_cast<std::size_t>(count);
  const std::size_t of_unsent = std::min(sent, unsent_.size());
  unsent_.erase(0, of_unsent);
  rest.remove_prefix(sent - of_unsent);
  return {};
}

// False when `deadline` has passed or, with `wants_to_send`, something can be sent.
Result<bool> Connection::FillOnce(const Deadline& deadline, bool wants_to_send) {
  std::span<char> room = reader_.Room(kReadBytes);
  if (leave_rest_) room = room.first(std::min(room.size(), reader_.Missing()));
  for (;;) {
    const ssize_t count = ::recv(fd_.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (count > 0) {
      reader_.Filled(static_cast<std::size_t>(count));
      return true;
    }
    if (count == 0) return Lost("before its answer was complete");
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return Lost("before its answer was complete");
    const short ready =
        Poll(fd_.get(), static_cast<short>(POLLIN | (wants_to_send ? POLLOUT : 0)), deadline);
    if ((ready & ~POLLOUT) == 0) return false;
  }
}

Result<std::optional<Frame>> Connection::Receive(const Deadline& deadline, bool wants_to_send) {
  for (;;) {
    Frame frame;
    switch (reader_.Next(frame)) {
      case FrameReader::State::kFrame:
        return frame;
      case FrameReader::State::kBroken:
        return Fail(errors::kAgentProtocol, "the machine's agent sent what is no frame");
      case FrameReader::State::kMore:
        break;
    }
    CAISSON_ASSIGN(const bool filled, FillOnce(deadline, wants_to_send));
    if (!filled) return std::nullopt;
  }
}

Result<std::optional<Frame>> Connection::ReceiveWithin(std::optional<milliseconds> wait,
                                                       bool wants_to_send) {
  const auto begin = Clock::now();
  const milliseconds left = std::max(patience_ - quiet_, milliseconds(0));
  const auto frame = Receive(begin + (wait ? std::min(*wait, left) : left), wants_to_send);
  if (!frame || *frame) {
    quiet_ = milliseconds(0);
    return frame;
  }
  quiet_ += std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
  if (quiet_ >= patience_) return NoAnswer();
  return frame;
}

Result<Frame> Connection::ExpectLast(FrameType type) {
  leave_rest_ = true;
  return Expect(type);
}

Result<Frame> Connection::Expect(FrameType type, milliseconds more) {
  return ExpectEither(type, type, more);
}

Result<Frame> Connection::ExpectEither(FrameType one, FrameType other, milliseconds more) {
  CAISSON_ASSIGN(const std::optional<Frame> frame, Receive(Clock::now() + patience_ + more));
  if (!frame) return NoAnswer();
  if (frame->type == FrameType::kFailed) {
    CAISSON_ASSIGN(const Failure failure, As<Failure>(*frame));
    return FailureStatus(failure);
  }
  if (frame->type != one && frame->type != other) return Unexpected(frame->type);
  return *frame;
}

std::unexpected<Status> Connection::NoAnswer() const {
  return Fail(errors::kAgentNoAnswer, "the machine's agent said nothing for " +
                                          std::to_string(patience_.count()) +
                                          " ms while an answer was due");
}

std::unexpected<Status> Connection::Malformed(FrameType type) {
  return Fail(errors::kAgentProtocol, "the machine's agent sent a malformed frame of type " +
                                          std::to_string(static_cast<int>(type)));
}

std::unexpected<Status> Connection::Unexpected(FrameType type) {
  return Fail(errors::kAgentProtocol, "the machine's agent sent a frame of type " +
                                          std::to_string(static_cast<int>(type)) +
                                          " where none is due");
}

Result<os::UniqueFd> Connection::Release() {
  if (!reader_.empty()) {
    return Fail(errors::kAgentProtocol, "the machine's agent sent more than its answer");
  }
  SetSendTimeout(fd_.get(), milliseconds(0));
  return std::move(fd_);
}

}  // namespace caisson::agent
