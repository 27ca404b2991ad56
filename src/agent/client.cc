// SPDX-License-Identifier: Apache-2.0
#include "agent/client.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "errors/agent.h"

namespace caisson::agent {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kStdinPiece = 64u << 10;

Result<ExecEvent> ReadExit(const Frame& frame) {
  CAISSON_ASSIGN(const ExitReport exit, Connection::As<ExitReport>(frame));
  return ExecEvent{.kind = ExecEvent::Kind::kExit,
                   .exit_code = exit.exit_code,
                   .signal = exit.signal,
                   .timed_out = exit.timed_out};
}

}  // namespace

Result<Exec> Exec::Start(os::UniqueFd connection, const ExecRequest& request) {
  Exec exec(std::make_unique<Connection>(std::move(connection)));
  CAISSON_TRY(exec.connection_->SendMessage(FrameType::kExec, request));
  return exec;
}

Result<ExecEvent> Exec::Next(std::optional<milliseconds> wait) {
  Connection::Deadline deadline;
  if (wait) deadline = Clock::now() + *wait;
  std::optional<Frame> frame;
  for (;;) {
    FeedSome();
    std::optional<milliseconds> left;
    if (deadline) {
      left = std::max(std::chrono::ceil<milliseconds>(*deadline - Clock::now()), milliseconds(0));
    }
    CAISSON_ASSIGN(frame, connection_->ReceiveWithin(left, feed_ != Feed::kNone));
    if (frame) break;
    if (feed_ == Feed::kNone || (left && left->count() == 0)) return ExecEvent{};
  }
  using Kind = ExecEvent::Kind;
  switch (frame->type) {
    case FrameType::kStarted: {
      CAISSON_ASSIGN(const Started started, Connection::As<Started>(*frame));
      return ExecEvent{.kind = Kind::kStarted, .pid = started.pid};
    }
    case FrameType::kStdout:
      return ExecEvent{.kind = Kind::kStdout, .data = frame->payload};
    case FrameType::kStderr:
      return ExecEvent{.kind = Kind::kStderr, .data = frame->payload};
    case FrameType::kHeartbeat:
      return ExecEvent{};
    case FrameType::kExit:
      return ReadExit(*frame);
    case FrameType::kFailed: {
      CAISSON_ASSIGN(Failure failure, Connection::As<Failure>(*frame));
      if (failure.kind != FailureKind::kStartFailed) return FailureStatus(failure);
      failure_text_ = std::move(failure.message);
      return ExecEvent{.kind = Kind::kFailedToStart, .data = failure_text_, .error = failure.error};
    }
    default:
      return Connection::Unexpected(frame->type);
  }
}

void Exec::FeedStdin(std::string_view text) {
  feed_text_ = text;
  feed_ = Feed::kText;
}

// What fails here has another end that Receive tells: an exit, or that the connection is lost.
void Exec::FeedSome() {
  while (feed_ != Feed::kNone) {
    if (feed_ == Feed::kFlush) {
      const auto flushed = connection_->Flush();
      if (!flushed || *flushed) feed_ = Feed::kNone;
      return;
    }
    const bool closes = feed_text_.empty();
    const std::string_view piece = feed_text_.substr(0, kStdinPiece);
    const auto taken =
        connection_->TrySend(closes ? FrameType::kStdinClose : FrameType::kStdin, piece);
    if (!taken) feed_ = Feed::kNone;
    if (!taken || !*taken) return;
    feed_text_.remove_prefix(piece.size());
    if (closes) feed_ = Feed::kFlush;
  }
}

Result<void> Exec::WriteStdin(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kStdinPiece);
    CAISSON_TRY(connection_->Send(FrameType::kStdin, piece));
    bytes.remove_prefix(piece.size());
  }
  return {};
}

Result<void> Exec::CloseStdin() { return connection_->Send(FrameType::kStdinClose, {}); }

Result<void> Exec::Resize(Pty size) { return connection_->SendMessage(FrameType::kResize, size); }

Result<void> Exec::Signal(int signal) {
  return connection_->SendMessage(FrameType::kSignal, SignalNumber{signal});
}

Result<os::UniqueFd> Dial(os::UniqueFd fd, const DialRequest& request) {
  Connection connection(std::move(fd));
  CAISSON_TRY(connection.SendMessage(FrameType::kDial, request));
  CAISSON_TRY(connection.ExpectLast(FrameType::kOk));
  return connection.Release();
}

Result<void> Ping(os::UniqueFd fd, milliseconds patience) {
  Connection connection(std::move(fd), patience);
  CAISSON_TRY(connection.Send(FrameType::kPing, {}));
  CAISSON_TRY(connection.Expect(FrameType::kOk));
  return {};
}

Result<void> LetGo(os::UniqueFd fd, milliseconds patience) {
  Connection connection(std::move(fd), patience);
  CAISSON_TRY(connection.Send(FrameType::kLetGo, {}));
  CAISSON_TRY(connection.Expect(FrameType::kOk));
  // The agent has shut its direction down already; that it has closed its end is told by a byte
  // that finds nobody.
  const auto until = std::chrono::steady_clock::now() + patience;
  while (::send(connection.fd(), "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 || errno == EAGAIN) {
    if (std::chrono::steady_clock::now() > until) {
      return caisson::Fail(errors::kAgentNoAnswer, "the agent does not let its socket go");
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
  return {};
}

Result<void> Identify(os::UniqueFd fd, const IdentifyRequest& request) {
  Connection connection(std::move(fd));
  CAISSON_TRY(connection.SendMessage(FrameType::kIdentify, request));
  CAISSON_TRY(connection.Expect(FrameType::kOk));
  return {};
}

Result<AgentInfo> Info(os::UniqueFd fd) {
  Connection connection(std::move(fd));
  CAISSON_TRY(connection.Send(FrameType::kInfo, {}));
  return connection.ExpectMessage<AgentInfo>(FrameType::kInfoAnswer);
}

Result<Watch> Watch::Start(os::UniqueFd fd) {
  Watch watch(std::make_unique<Connection>(std::move(fd)));
  CAISSON_TRY(watch.connection_->Send(FrameType::kWatch, {}));
  CAISSON_TRY(watch.connection_->Expect(FrameType::kOk));
  return watch;
}

Result<WatchEvent> Watch::Next(std::optional<milliseconds> wait) {
  CAISSON_ASSIGN(const std::optional<Frame> frame, connection_->ReceiveWithin(wait));
  WatchEvent event;
  if (!frame || frame->type == FrameType::kHeartbeat) return event;
  if (frame->type == FrameType::kSelf) {
    CAISSON_ASSIGN(event.self, Connection::As<SelfRequest>(*frame));
    return event;
  }
  if (frame->type != FrameType::kActivity) return Connection::Unexpected(frame->type);
  CAISSON_ASSIGN(event.activity, Connection::As<Activity>(*frame));
  return event;
}

}  // namespace caisson::agent
