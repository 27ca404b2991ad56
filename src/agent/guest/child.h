// SPDX-License-Identifier: Apache-2.0
// A command with its streams, from its start until nothing of it is left. Its listener may go away
// before: then its output is read and thrown away, so that what it left in the background does not
// die of a broken pipe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/guest/failure.h"
#include "agent/guest/loop.h"
#include "agent/guest/process_tree.h"
#include "agent/guest/spawner.h"
#include "agent/messages.h"

namespace caisson::agent::guest {

class ChildTable;

class ChildListener {
 public:
  virtual ~ChildListener() = default;
  virtual void OnStarted() = 0;
  virtual void OnStartFailed(const Failure& failure) = 0;
  // Good for the call. May pause the output.
  virtual void OnOutput(OutputStream stream, std::string_view bytes) = 0;
  // After all that the command itself had written, and a moment for what it left behind.
  virtual void OnExit(int wait_status) = 0;
  virtual void OnEndUnknown() = 0;  // in place of OnExit
  virtual void OnTreeEnded() = 0;   // nothing of it is left
  virtual void OnInputTaken() = 0;  // of what was written, less is pending now
};

class Child final : public Disposable {
 public:
  Child(ChildTable& table, ChildListener* listener) : table_(table), listener_(listener) {}
  // Called once. What fails later is told to the listener.
  Attempt<void> Start(const Command& command, bool input_open);

  bool started() const { return started_; }
  pid_t pid() const { return leader_; }
  bool leader_exited() const { return status_.has_value() || end_unknown_; }
  bool tree_ended() const { return tree_ended_; }
  bool has_terminal() const { return is_pty_; }
  pid_t ForegroundGroup() const;  // of the terminal; -1 when there is none

  void PauseOutput(bool pause);
  // Kept until the command reads it. False when its input is closed.
  bool Write(std::string_view bytes);
  std::size_t pending_input() const { return pending_input_.size(); }
  bool input_closed() const { return input_closed_; }
  void CloseInput();  // after what is pending
  void Resize(Pty size);
  void Signal(int signal);      // to its process group, or the terminal's foreground
  void SignalTree(int signal);  // to everything of it
  void Kill();                  // everything of it, and again until nothing is left
  // No more calls to the listener.
  void Detach();
  void OnReaped(pid_t pid, int wait_status);

 private:
  struct Output {
    std::unique_ptr<EventSource> source;  // none: at its end
    OutputStream stream = OutputStream::kStdout;
    Clock::time_point last_read;
    std::int64_t left = 0;  // once the leader has ended: bytes that are still its own
  };
  Attempt<CommandStreams> MakePipes(bool input_open);
  Attempt<CommandStreams> MakeTerminal(Pty size);
  void AddOutput(OutputStream stream, os::UniqueFd fd);
  void SetInput(os::UniqueFd fd);
  void ReadReports();
  void TakeReports();
  void TakeReport(const SupervisorReport& report);
  void OnSupervisorGone();
  std::vector<ProcessEntry> Left(const std::vector<ProcessEntry>& all) const;
  void EndTreeIfNothingIsLeft();
  void TellStarted();
  void FailStart(const Failure& failure);
  bool ReadOutput(Output& output);
  void Gather(Output& output, std::size_t count);
  void Drain();
  void TellExitIfDrained();
  void WriteInput();
  void EndInput();
  void KillMore();
  void LeaveIfDone();

  ChildTable& table_;
  ChildListener* listener_;
  std::string program_;  // for messages
  std::string cwd_;
  bool is_pty_ = false;

  std::unique_ptr<EventSource> reports_;
  pid_t leader_ = -1;
  pid_t supervisor_ = -1;  // also once it is reaped
  pid_t reaped_ = -1;      // just now
  std::optional<int> status_;
  bool started_ = false;
  bool start_failed_ = false;
  bool end_unknown_ = false;
  bool all_ended_ = false;  // as the supervisor said; else it was killed
  bool exit_told_ = false;
  bool tree_ended_ = false;

  std::array<Output, 2> outputs_;
  bool output_paused_ = false;
  bool grace_over_ = false;
  std::unique_ptr<Timer> grace_;
  std::unique_ptr<Timer> gathered_;

  std::unique_ptr<EventSource> input_;
  std::string pending_input_;
  bool input_closed_ = false;
  bool closes_input_ = false;

  std::unique_ptr<Timer> kill_timer_;
  milliseconds kill_wait_{2};
  bool kill_asked_ = false;
  bool left_ = false;
  std::vector<int> early_signals_;
};

class ChildTable {
 public:
  // `on_activity` is called when a command says something, starts or ends.
  ChildTable(Loop& loop, Spawner& spawner, std::function<void()> on_activity)
      : loop_(loop), spawner_(spawner), on_activity_(std::move(on_activity)) {}
  // Owned here until nothing of it is left and nobody listens.
  Attempt<Child*> Start(const Command& command, bool input_open, ChildListener* listener);
  void OnReaped(pid_t pid, int wait_status);
  std::uint64_t output_bytes() const { return output_bytes_; }

 private:
  friend class Child;
  void Remove(Child* child);

  Loop& loop_;
  Spawner& spawner_;
  std::function<void()> on_activity_;
  std::list<std::unique_ptr<Child>> children_;
  std::uint64_t output_bytes_ = 0;
  std::array<char, 128u << 10> buffer_;
};

}  // namespace caisson::agent::guest
