// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/agent_call.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "agent/messages.h"

namespace caisson::machine::microvm {

AgentCall::AgentCall(agent::guest::Loop& loop, os::UniqueFd socket, agent::FrameType type,
                     const std::string& payload, std::chrono::milliseconds patience, Done done)
    : loop_(loop),
      timer_(loop, [this] { Finish(false, "it does not answer"); }),
      done_(std::move(done)) {
  const agent::FrameHeader header = agent::MakeFrameHeader(type, payload.size());
  std::string text(header.bytes, agent::kFrameHeaderBytes);
  text += payload;
  (void)!::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
  source_ = std::make_unique<agent::guest::EventSource>(loop, std::move(socket),
                                                        [this](std::uint32_t) { Read(); });
  source_->Want(EPOLLIN);
  timer_.Set(patience);
}

void AgentCall::Read() {
  const auto room = reader_.Room(4096);
  const ssize_t n = ::read(source_->fd(), room.data(), room.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return Finish(false, "its connection broke");
  reader_.Filled(static_cast<std::size_t>(n));
  for (agent::Frame frame;;) {
    switch (reader_.Next(frame)) {
      case agent::FrameReader::State::kMore:
        return;
      case agent::FrameReader::State::kBroken:
        return Finish(false, "it says what is no frame");
      case agent::FrameReader::State::kFrame:
        break;
    }
    if (Take(frame)) return;
  }
}

// Whether that was the end.
bool AgentCall::Take(const agent::Frame& frame) {
  switch (frame.type) {
    case agent::FrameType::kStarted:
    case agent::FrameType::kStdout:
    case agent::FrameType::kStderr:
    case agent::FrameType::kHeartbeat:
      return false;
    case agent::FrameType::kOk:
    case agent::FrameType::kExit:
      Finish(true, "");
      return true;
    default:
      break;
  }
  const auto failure = agent::Decode<agent::Failure>(frame.payload);
  Finish(false, failure ? failure->message : "it answers something else");
  return true;
}

void AgentCall::Finish(bool answered, const std::string& failure) {
  timer_.Clear();
  loop_.Retire(source_);
  if (done_) std::exchange(done_, nullptr)(answered, failure);
}

}  // namespace caisson::machine::microvm
