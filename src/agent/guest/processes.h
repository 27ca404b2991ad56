// SPDX-License-Identifier: Apache-2.0
// Managed processes: commands that live on without a connection, and whose output is kept in a
// window that any number of connections replays and follows.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "agent/guest/child.h"
#include "agent/guest/failure.h"
#include "agent/guest/loop.h"
#include "agent/messages.h"

namespace caisson::agent::guest {

class ProcessTable;

// Somebody who is told of every change of a process.
class ProcessObserver {
 public:
  virtual ~ProcessObserver() = default;
  virtual void OnChange() = 0;
  virtual void OnForgotten() = 0;  // the process is gone from the table
};

class ManagedProcess final : private ChildListener, public Disposable {
 public:
  ManagedProcess(ProcessTable& table, std::string id, const Command& command);
  ~ManagedProcess() override;
  Attempt<void> Start(const Command& command);

  const std::string& id() const { return id_; }
  ProcessView View() const;
  bool has_started() const { return child_->started(); }
  const std::optional<Failure>& start_failure() const { return start_failure_; }
  bool leader_exited() const { return exit_told_; }
  bool tree_exited() const { return exit_told_ && tree_ended_; }
  bool is_pty() const { return is_pty_; }

  // The event after `seq`: kept, dropped, or not there yet (nullptr).
  bool HasDropped(std::uint64_t seq) const { return seq + 1 < oldest_seq_; }
  const ProcessEvent* After(std::uint64_t seq) const;
  std::uint64_t oldest_seq() const { return oldest_seq_; }
  std::size_t kept_bytes() const { return kept_bytes_; }
  void DropOldest();

  Attempt<std::uint64_t> Input(std::string_view bytes);
  void CloseInput() { child_->CloseInput(); }
  void Resize(Pty size) { child_->Resize(size); }
  void Signal(int signal) { child_->Signal(signal); }
  void Terminate(milliseconds grace);

  void AddObserver(ProcessObserver* observer) { observers_.insert(observer); }
  void RemoveObserver(ProcessObserver* observer) { observers_.erase(observer); }
  void TellForgotten();

 private:
  void OnStarted() override { TellChange(); }
  void OnStartFailed(const Failure& failure) override;
  void OnOutput(OutputStream stream, std::string_view bytes) override;
  void OnExit(int wait_status) override;
  void OnEndUnknown() override;
  void OnTreeEnded() override;
  void OnInputTaken() override {}
  void Keep(ProcessEvent event);
  void TellChange();

  ProcessTable& table_;
  std::string id_;
  std::vector<std::string> argv_;
  std::string cwd_;
  bool is_pty_;
  std::int64_t created_at_ms_;
  std::optional<std::int64_t> finished_at_ms_;
  std::optional<std::int32_t> exit_code_;
  std::optional<std::int32_t> signal_;
  Child* child_ = nullptr;
  std::optional<Failure> start_failure_;
  bool exit_told_ = false;
  bool end_unknown_ = false;
  bool tree_ended_ = false;
  bool terminating_ = false;
  std::optional<Timer> grace_;

  std::deque<ProcessEvent> window_;  // of consecutive numbers
  std::uint64_t oldest_seq_ = 1;     // of the first in the window, or that it will have
  std::size_t kept_bytes_ = 0;
  std::uint64_t input_seq_ = 0;
  std::set<ProcessObserver*> observers_;
};

class ProcessTable {
 public:
  ProcessTable(Loop& loop, ChildTable& children) : loop_(loop), children_(children) {}
  void set_id_prefix(std::string prefix) { id_prefix_ = std::move(prefix); }

  Attempt<ManagedProcess*> Start(const Command& command);
  ManagedProcess* Find(const std::string& id);
  const std::map<std::uint64_t, std::unique_ptr<ManagedProcess>>& all() const { return all_; }
  std::uint32_t CountRunning() const;
  void Forget(ManagedProcess* process);

 private:
  friend class ManagedProcess;
  void ForgetEnded();
  void KeepWithin();

  Loop& loop_;
  ChildTable& children_;
  std::string id_prefix_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, std::unique_ptr<ManagedProcess>> all_;  // oldest first
  std::size_t kept_bytes_ = 0;
};

}  // namespace caisson::agent::guest
