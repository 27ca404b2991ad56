// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/processes.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "agent/guest/process_tree.h"

namespace caisson::agent::guest {
namespace {

constexpr std::size_t kMostProcesses = 256;             // that have not ended
constexpr std::size_t kMostEnded = 64;                  // that are still told about
constexpr std::size_t kMostKeptBytes = 1u << 20;        // of one process's output
constexpr std::size_t kMostKeptInTotal = 8u << 20;      // of all
constexpr std::size_t kMostArgumentBytes = 128u << 10;  // which every view repeats
constexpr std::size_t kMostPendingInput = 1u << 20;
constexpr std::size_t kEventBytes = sizeof(ProcessEvent);  // beside its data

std::int64_t NowMs() {
  return std::chrono::duration_cast<milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

ManagedProcess::ManagedProcess(ProcessTable& table, std::string id, const Command& command)
    : table_(table),
      id_(std::move(id)),
      argv_(command.argv),
      cwd_(command.cwd.empty() ? "/" : command.cwd),
      is_pty_(command.pty.has_value()),
      created_at_ms_(NowMs()) {}

ManagedProcess::~ManagedProcess() {
  table_.kept_bytes_ -= kept_bytes_;
  if (child_ != nullptr) child_->Detach();
}

Attempt<void> ManagedProcess::Start(const Command& command) {
  auto child = table_.children_.Start(command, true, this);
  if (!child) return std::unexpected(child.error());
  child_ = *child;
  return {};
}

ProcessView ManagedProcess::View() const {
  ProcessView view{.process_id = id_,
                   .is_pty = is_pty_,
                   .pid = std::max(child_->pid(), 0),
                   .state = ProcessState::kRunning,
                   .leader_exited = leader_exited(),
                   .tree_exited = tree_exited(),
                   .created_at_ms = created_at_ms_,
                   .finished_at_ms = finished_at_ms_,
                   .exit_code = exit_code_,
                   .signal = signal_,
                   .argv = argv_,
                   .cwd = cwd_,
                   .foreground = {},
                   .output = {.oldest_seq = window_.empty() ? 0 : oldest_seq_,
                              .newest_seq = oldest_seq_ + window_.size() - 1,
                              .bytes = kept_bytes_ - window_.size() * kEventBytes}};
  if (end_unknown_ || start_failure_) {
    view.state = ProcessState::kFailed;
  } else if (!child_->started()) {
    view.state = ProcessState::kStarting;
  } else if (terminating_ && !tree_exited()) {
    view.state = ProcessState::kTerminating;
  } else if (leader_exited()) {
    view.state = ProcessState::kExited;
  }
  if (const pid_t group = leader_exited() ? -1 : child_->ForegroundGroup(); group > 0) {
    view.foreground = Foreground{.pid = group, .argv = CommandLine(group)};
  }
  return view;
}

const ProcessEvent* ManagedProcess::After(std::uint64_t seq) const {
  if (seq + 1 < oldest_seq_ || seq + 1 - oldest_seq_ >= window_.size()) return nullptr;
  return &window_[seq + 1 - oldest_seq_];
}

void ManagedProcess::DropOldest() {
  const std::size_t bytes = window_.front().data.size() + kEventBytes;
  kept_bytes_ -= bytes;
  table_.kept_bytes_ -= bytes;
  window_.pop_front();
  ++oldest_seq_;
}

void ManagedProcess::Keep(ProcessEvent event) {
  event.seq = oldest_seq_ + window_.size();
  const std::size_t bytes = event.data.size() + kEventBytes;
  window_.push_back(std::move(event));
  kept_bytes_ += bytes;
  table_.kept_bytes_ += bytes;
  while (kept_bytes_ > kMostKeptBytes) DropOldest();
  table_.KeepWithin();
  TellChange();
}

void ManagedProcess::OnOutput(OutputStream stream, std::string_view bytes) {
  Keep({.type = EventType::kData, .stream = stream, .data = std::string(bytes)});
}

void ManagedProcess::OnExit(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    signal_ = WTERMSIG(wait_status);
  } else {
    exit_code_ = WEXITSTATUS(wait_status);
  }
  exit_told_ = true;
  finished_at_ms_ = NowMs();
  Keep({.type = EventType::kExit, .exit_code = exit_code_, .signal = signal_});
}

void ManagedProcess::OnEndUnknown() {
  exit_told_ = end_unknown_ = true;
  finished_at_ms_ = NowMs();
  Keep({.type = EventType::kError,
        .error = "what watched the process was killed together with it, so how it ended cannot be "
                 "known"});
}

void ManagedProcess::OnTreeEnded() {
  tree_ended_ = true;
  if (grace_) grace_->Clear();
  TellChange();
}

void ManagedProcess::OnStartFailed(const Failure& failure) {
  start_failure_ = failure;
  exit_told_ = tree_ended_ = true;
  TellChange();
  table_.Forget(this);
}

void ManagedProcess::TellChange() {
  for (auto next = observers_.begin(); next != observers_.end();) (*next++)->OnChange();
}

void ManagedProcess::TellForgotten() {
  for (ProcessObserver* observer : std::exchange(observers_, {})) observer->OnForgotten();
}

Attempt<std::uint64_t> ManagedProcess::Input(std::string_view bytes) {
  if (child_->pending_input() + bytes.size() > kMostPendingInput) {
    return Fail(FailureKind::kInputFull,
                "the process " + id_ + " does not read its input; try again when it does");
  }
  if (leader_exited() || !child_->Write(bytes)) {
    return Fail(FailureKind::kProcessEnded,
                "the process " + id_ + " has ended, or its input is closed");
  }
  return ++input_seq_;
}

void ManagedProcess::Terminate(milliseconds grace) {
  if (tree_exited()) return;
  terminating_ = true;
  child_->SignalTree(SIGTERM);
  // Shells on a terminal do not heed it; what they end for is the terminal's going away.
  if (is_pty_) child_->SignalTree(SIGHUP);
  if (!grace_) grace_.emplace(table_.loop_, [this] { child_->Kill(); });
  grace_->Set(grace);
}

Attempt<ManagedProcess*> ProcessTable::Start(const Command& command) {
  std::size_t bytes = command.cwd.size();
  for (const std::string& argument : command.argv) bytes += argument.size() + sizeof(std::string);
  if (bytes > kMostArgumentBytes) {
    return Fail(FailureKind::kBadRequest,
                "the arguments of a managed process have more than 131072 bytes in all; put them "
                "into a file");
  }
  ForgetEnded();
  const std::size_t live = static_cast<std::size_t>(
      std::ranges::count_if(all_, [](const auto& entry) { return !entry.second->tree_exited(); }));
  if (live >= kMostProcesses) {
    return Fail(FailureKind::kBusy, "the machine has " + std::to_string(live) +
                                        " managed processes; end some before more are started");
  }
  const std::uint64_t number = ++last_number_;
  auto process =
      std::make_unique<ManagedProcess>(*this, id_prefix_ + "-" + std::to_string(number), command);
  if (auto started = process->Start(command); !started) return std::unexpected(started.error());
  return all_.emplace(number, std::move(process)).first->second.get();
}

ManagedProcess* ProcessTable::Find(const std::string& id) {
  const auto found =
      std::ranges::find_if(all_, [&id](const auto& entry) { return entry.second->id() == id; });
  return found == all_.end() ? nullptr : found->second.get();
}

std::uint32_t ProcessTable::CountRunning() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      all_, [](const auto& entry) { return !entry.second->leader_exited(); }));
}

void ProcessTable::Forget(ManagedProcess* process) {
  const auto found = std::ranges::find_if(
      all_, [process](const auto& entry) { return entry.second.get() == process; });
  if (found == all_.end()) return;
  process->TellForgotten();
  loop_.Dispose(std::move(found->second));
  all_.erase(found);
}

void ProcessTable::ForgetEnded() {
  std::vector<ManagedProcess*> ended;
  for (const auto& [number, process] : all_) {
    if (process->tree_exited()) ended.push_back(process.get());
  }
  for (std::size_t i = 0; i + kMostEnded < ended.size(); ++i) Forget(ended[i]);
}

// Whoever keeps most gives first.
void ProcessTable::KeepWithin() {
  while (kept_bytes_ > kMostKeptInTotal) {
    const auto largest = std::ranges::max_element(
        all_, {}, [](const auto& entry) { return entry.second->kept_bytes(); });
    if (largest == all_.end() || largest->second->kept_bytes() == 0) return;
    largest->second->DropOldest();
  }
}

}  // namespace caisson::agent::guest
