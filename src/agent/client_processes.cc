// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "agent/client.h"

namespace caisson::agent {
namespace {

// A request that is answered by one message.
template <typename Answer, typename Request>
Result<Answer> Ask(os::UniqueFd fd, FrameType type, const Request& request, FrameType answer,
                   milliseconds more = {}) {
  Connection connection(std::move(fd));
  CAISSON_TRY(connection.SendMessage(type, request));
  return connection.ExpectMessage<Answer>(answer, more);
}

template <typename Request>
Result<void> Tell(os::UniqueFd fd, FrameType type, const Request& request) {
  Connection connection(std::move(fd));
  CAISSON_TRY(connection.SendMessage(type, request));
  CAISSON_TRY(connection.Expect(FrameType::kOk));
  return {};
}

// How long the agent keeps the ended ones bounds their number; this is far beyond it.
constexpr std::size_t kMaxListed = 100'000;

}  // namespace

Result<ProcessView> StartProcess(os::UniqueFd fd, const Command& command) {
  return Ask<ProcessView>(std::move(fd), FrameType::kProcessStart, command, FrameType::kProcess);
}

Result<std::vector<ProcessView>> ListProcesses(os::UniqueFd fd) {
  Connection connection(std::move(fd));
  CAISSON_TRY(connection.Send(FrameType::kProcessList, {}));
  std::vector<ProcessView> views;
  for (;;) {
    CAISSON_ASSIGN(const Frame frame,
                   connection.ExpectEither(FrameType::kProcess, FrameType::kEnd));
    if (frame.type == FrameType::kEnd) return views;
    if (views.size() >= kMaxListed) return Connection::Unexpected(frame.type);
    CAISSON_ASSIGN(ProcessView view, Connection::As<ProcessView>(frame));
    views.push_back(std::move(view));
  }
}

Result<ProcessView> GetProcess(os::UniqueFd fd, const std::string& process_id) {
  return Ask<ProcessView>(std::move(fd), FrameType::kProcessGet, ProcessRequest{process_id},
                          FrameType::kProcess);
}

Result<std::uint64_t> SendInput(os::UniqueFd fd, const InputRequest& request) {
  CAISSON_ASSIGN(const InputTaken taken, Ask<InputTaken>(std::move(fd), FrameType::kProcessInput,
                                                         request, FrameType::kInputTaken));
  return taken.input_seq;
}

Result<void> CloseInput(os::UniqueFd fd, const std::string& process_id) {
  return Tell(std::move(fd), FrameType::kProcessCloseInput, ProcessRequest{process_id});
}

Result<void> ResizeProcess(os::UniqueFd fd, const ResizeRequest& request) {
  return Tell(std::move(fd), FrameType::kProcessResize, request);
}

Result<void> SignalProcess(os::UniqueFd fd, const SignalRequest& request) {
  return Tell(std::move(fd), FrameType::kProcessSignal, request);
}

Result<ProcessView> WaitProcess(os::UniqueFd fd, const WaitRequest& request) {
  Connection connection(std::move(fd));
  CAISSON_TRY(connection.SendMessage(FrameType::kProcessWait, request));
  for (;;) {
    CAISSON_ASSIGN(const Frame frame,
                   connection.ExpectEither(FrameType::kHeartbeat, FrameType::kProcess));
    if (frame.type == FrameType::kProcess) return Connection::As<ProcessView>(frame);
  }
}

Result<ProcessView> TerminateProcess(os::UniqueFd fd, const TerminateRequest& request) {
  return Ask<ProcessView>(std::move(fd), FrameType::kProcessTerminate, request, FrameType::kProcess,
                          request.grace);
}

Result<ProcessEvents> ProcessEvents::Connect(os::UniqueFd fd, const ConnectRequest& request) {
  ProcessEvents events(std::make_unique<Connection>(std::move(fd)));
  CAISSON_TRY(events.connection_->SendMessage(FrameType::kProcessConnect, request));
  CAISSON_TRY(events.connection_->Expect(FrameType::kOk));
  return events;
}

Result<std::optional<ProcessEvent>> ProcessEvents::Next(std::optional<milliseconds> wait) {
  if (ended_) return std::nullopt;
  CAISSON_ASSIGN(const std::optional<Frame> frame, connection_->ReceiveWithin(wait));
  if (!frame || frame->type == FrameType::kHeartbeat) {
    return ProcessEvent{.type = EventType::kHeartbeat};
  }
  if (frame->type == FrameType::kEnd) {
    ended_ = true;
    return std::nullopt;
  }
  if (frame->type != FrameType::kEvent) return Connection::Unexpected(frame->type);
  return Connection::As<ProcessEvent>(*frame);
}

}  // namespace caisson::agent
