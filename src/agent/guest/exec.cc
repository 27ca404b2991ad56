// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/exec.h"

#include <sys/wait.h>

#include <csignal>
#include <utility>

namespace caisson::agent::guest {
namespace {

constexpr milliseconds kHeartbeat{5000};
// Beyond it the host has to wait; signals and sizes that come behind less still get through.
constexpr std::size_t kMostPendingInput = 256u << 10;

}  // namespace

ExecOperation::ExecOperation(HostConnection& connection, const ExecRequest& request)
    : Operation(connection),
      counted_(connection.agent(), &Counts::commands),
      timeout_(connection.agent().loop,
               [this] {
                 timed_out_ = true;
                 child_->Kill();
               }),
      heartbeat_(connection.agent().loop, [this] {
        if (!connection_.congested()) connection_.Send(FrameType::kHeartbeat, {});
        heartbeat_.Set(kHeartbeat);
      }) {
  auto started = connection.agent().children.Start(request.command, request.stdin_open, this);
  if (!started) {
    connection_.Fail(started.error());
    return;
  }
  child_ = *started;
  heartbeat_.Set(kHeartbeat);
  if (request.timeout) timeout_.Set(*request.timeout);
}

ExecOperation::~ExecOperation() {
  if (child_ == nullptr) return;
  child_->Kill();
  child_->Detach();
}

void ExecOperation::OnFrame(const Frame& frame) {
  if (frame.type == FrameType::kStdin) {
    child_->Write(frame.payload);  // one that does not read it any more is no failure
    connection_.PauseInput(child_->pending_input() > kMostPendingInput);
    return;
  }
  if (frame.type == FrameType::kStdinClose) return child_->CloseInput();
  if (frame.type == FrameType::kResize) {
    if (const auto size = Decode<Pty>(frame.payload)) return child_->Resize(*size);
  }
  if (frame.type == FrameType::kSignal) {
    const auto number = Decode<SignalNumber>(frame.payload);
    if (number && number->signal > 0 && number->signal < NSIG) {
      return child_->Signal(number->signal);
    }
  }
  Operation::OnFrame(frame);
}

void ExecOperation::OnInputTaken() {
  if (child_ != nullptr && child_->pending_input() <= kMostPendingInput / 2) {
    connection_.PauseInput(false);
  }
}

void ExecOperation::Say(FrameType type, std::string_view payload) {
  connection_.Send(type, payload);
  heartbeat_.Set(kHeartbeat);
  if (connection_.congested() && child_ != nullptr) child_->PauseOutput(true);
}

void ExecOperation::OnSent() {
  if (child_ != nullptr) child_->PauseOutput(false);
}

void ExecOperation::OnStarted() { Say(FrameType::kStarted, Encode(Started{child_->pid()})); }

void ExecOperation::OnStartFailed(const Failure& failure) {
  std::exchange(child_, nullptr)->Detach();
  connection_.Fail(failure);
}

void ExecOperation::OnOutput(OutputStream stream, std::string_view bytes) {
  Say(stream == OutputStream::kStderr ? FrameType::kStderr : FrameType::kStdout, bytes);
}

void ExecOperation::OnExit(int wait_status) {
  ExitReport report{.timed_out = timed_out_};
  if (WIFSIGNALED(wait_status)) {
    report.signal = WTERMSIG(wait_status);
  } else {
    report.exit_code = WEXITSTATUS(wait_status);
  }
  std::exchange(child_, nullptr)->Detach();
  connection_.SendMessage(FrameType::kExit, report);
  connection_.Finish();
}

void ExecOperation::OnEndUnknown() {
  std::exchange(child_, nullptr)->Detach();
  connection_.Fail({.kind = FailureKind::kLost,
                    .message = "what watched the command was killed together with it, so how it "
                               "ended cannot be known"});
}

}  // namespace caisson::agent::guest
