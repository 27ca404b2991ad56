// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/process_operations.h"

#include <csignal>
#include <optional>
#include <utility>

#include "agent/guest/processes.h"

namespace caisson::agent::guest {
namespace {

constexpr milliseconds kHeartbeat{5000};
// What is in an uninterruptible sleep outlives even SIGKILL; the host then hears how it stands.
constexpr milliseconds kAfterGrace{5000};

ManagedProcess* Find(HostConnection& connection, const std::string& id) {
  ManagedProcess* process = connection.agent().processes.Find(id);
  if (process == nullptr) {
    connection.Fail({.kind = FailureKind::kNoProcess,
                     .message = "there is no managed process " + id +
                                "; ended ones are forgotten "
                                "after a while"});
  }
  return process;
}

void AnswerView(HostConnection& connection, const ManagedProcess& process) {
  connection.SendMessage(FrameType::kProcess, process.View());
  connection.Finish();
}

void AnswerOk(HostConnection& connection) {
  connection.Send(FrameType::kOk, {});
  connection.Finish();
}

// Observes one process for as long as both are there.
class ProcessOperation : public Operation, protected ProcessObserver {
 public:
  ProcessOperation(HostConnection& connection, ManagedProcess* process)
      : Operation(connection), process_(process) {
    process_->AddObserver(this);
  }
  ~ProcessOperation() override {
    if (process_ != nullptr) process_->RemoveObserver(this);
  }

 protected:
  void OnForgotten() override {
    process_ = nullptr;
    if (connection_.finished()) return;
    connection_.Fail({.kind = FailureKind::kNoProcess, .message = "the process was forgotten"});
  }

  ManagedProcess* process_;
};

class StartOperation final : public ProcessOperation {
 public:
  using ProcessOperation::ProcessOperation;

 private:
  void OnChange() override {
    if (connection_.finished()) return;
    if (process_->start_failure()) return connection_.Fail(*process_->start_failure());
    if (process_->has_started()) AnswerView(connection_, *process_);
  }
};

// Answers with the view when a condition holds, or after a time as it is then.
class WaitOperation final : public ProcessOperation {
 public:
  WaitOperation(HostConnection& connection, ManagedProcess* process, WaitScope scope,
                std::optional<milliseconds> timeout)
      : ProcessOperation(connection, process),
        scope_(scope),
        timeout_(connection.agent().loop, [this] { AnswerView(connection_, *process_); }),
        heartbeat_(connection.agent().loop, [this] { Beat(); }) {
    heartbeat_.Set(kHeartbeat);
    if (timeout) timeout_.Set(*timeout);
    OnChange();
  }

 private:
  void OnChange() override {
    if (connection_.finished()) return;
    const bool over =
        scope_ == WaitScope::kTree ? process_->tree_exited() : process_->leader_exited();
    if (over) AnswerView(connection_, *process_);
  }
  void Beat() {
    if (!connection_.congested()) connection_.Send(FrameType::kHeartbeat, {});
    heartbeat_.Set(kHeartbeat);
  }

  WaitScope scope_;
  Timer timeout_;
  Timer heartbeat_;
};

// Replays the window and follows the process, to its exit or, beyond that, to the end of its tree.
class ConnectOperation final : public ProcessOperation {
 public:
  ConnectOperation(HostConnection& connection, ManagedProcess* process, std::uint64_t after)
      : ProcessOperation(connection, process),
        counted_(connection.agent(), &Counts::streams),
        told_(after),
        heartbeat_(connection.agent().loop, [this] { Beat(); }) {
    connection.Send(FrameType::kOk, {});
    heartbeat_.Set(kHeartbeat);
    OnChange();
  }
  void OnSent() override { OnChange(); }

 private:
  void OnChange() override {
    while (!connection_.finished() && !connection_.congested()) {
      if (process_->HasDropped(told_)) return TellLost();
      const ProcessEvent* event = process_->After(told_);
      if (event == nullptr) {
        if (process_->tree_exited()) TellEnd();
        return;
      }
      told_ = event->seq;
      const bool is_last = event->type != EventType::kData;
      connection_.SendMessage(FrameType::kEvent, *event);
      heartbeat_.Set(kHeartbeat);
      if (is_last) TellEnd();
    }
  }
  void TellLost() {
    connection_.SendMessage(
        FrameType::kEvent,
        ProcessEvent{.type = EventType::kError,
                     .error = "the output window does not reach back to event " +
                              std::to_string(told_ + 1) + "; connect after an event that it holds",
                     .oldest_available_seq = process_->oldest_seq()});
    TellEnd();
  }
  void TellEnd() {
    connection_.SendMessage(FrameType::kEnd, End{.count = told_});
    connection_.Finish();
  }
  void Beat() {
    if (!connection_.congested()) connection_.Send(FrameType::kHeartbeat, {});
    heartbeat_.Set(kHeartbeat);
  }

  Counted counted_;
  std::uint64_t told_;
  Timer heartbeat_;
};

}  // namespace

std::unique_ptr<Operation> BeginProcessStart(HostConnection& connection, const Command& command) {
  auto process = connection.agent().processes.Start(command);
  if (!process) {
    connection.Fail(process.error());
    return nullptr;
  }
  return std::make_unique<StartOperation>(connection, *process);
}

std::unique_ptr<Operation> BeginProcessConnect(HostConnection& connection,
                                               const ConnectRequest& request) {
  ManagedProcess* process = Find(connection, request.process_id);
  if (process == nullptr) return nullptr;
  return std::make_unique<ConnectOperation>(connection, process, request.after);
}

std::unique_ptr<Operation> BeginProcessWait(HostConnection& connection,
                                            const WaitRequest& request) {
  ManagedProcess* process = Find(connection, request.process_id);
  if (process == nullptr) return nullptr;
  return std::make_unique<WaitOperation>(connection, process, request.scope, request.timeout);
}

std::unique_ptr<Operation> BeginProcessTerminate(HostConnection& connection,
                                                 const TerminateRequest& request) {
  ManagedProcess* process = Find(connection, request.process_id);
  if (process == nullptr) return nullptr;
  process->Terminate(request.grace);
  return std::make_unique<WaitOperation>(connection, process, WaitScope::kTree,
                                         request.grace + kAfterGrace);
}

void AnswerProcessList(HostConnection& connection) {
  std::uint64_t count = 0;
  for (const auto& [number, process] : connection.agent().processes.all()) {
    connection.SendLater(FrameType::kProcess, Encode(process->View()));
    ++count;
  }
  connection.SendMessage(FrameType::kEnd, End{.count = count});
  connection.Finish();
}

void AnswerProcessGet(HostConnection& connection, const ProcessRequest& request) {
  if (const ManagedProcess* process = Find(connection, request.process_id)) {
    AnswerView(connection, *process);
  }
}

void AnswerProcessInput(HostConnection& connection, const InputRequest& request) {
  ManagedProcess* process = Find(connection, request.process_id);
  if (process == nullptr) return;
  const auto taken = process->Input(request.data);
  if (!taken) return connection.Fail(taken.error());
  connection.SendMessage(FrameType::kInputTaken, InputTaken{*taken});
  connection.Finish();
}

void AnswerProcessCloseInput(HostConnection& connection, const ProcessRequest& request) {
  ManagedProcess* process = Find(connection, request.process_id);
  if (process == nullptr) return;
  process->CloseInput();
  AnswerOk(connection);
}

void AnswerProcessResize(HostConnection& connection, const ResizeRequest& request) {
  ManagedProcess* process = Find(connection, request.process_id);
  if (process == nullptr) return;
  if (!process->is_pty()) {
    return connection.Fail({.kind = FailureKind::kNotAPty,
                            .message = "the process " + request.process_id + " has no terminal"});
  }
  process->Resize(request.size);
  AnswerOk(connection);
}

void AnswerProcessSignal(HostConnection& connection, const SignalRequest& request) {
  ManagedProcess* process = Find(connection, request.process_id);
  if (process == nullptr) return;
  if (request.signal <= 0 || request.signal >= NSIG) {
    return connection.Fail({.kind = FailureKind::kBadRequest,
                            .message = std::to_string(request.signal) + " is no signal"});
  }
  if (process->tree_exited()) {
    return connection.Fail({.kind = FailureKind::kProcessEnded,
                            .message = "the process " + request.process_id + " has ended"});
  }
  process->Signal(request.signal);
  AnswerOk(connection);
}

}  // namespace caisson::agent::guest
