// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/child.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <string>
#include <utility>

#include "agent/guest/process_tree.h"

namespace caisson::agent::guest {
namespace {

// What still comes out of the pipes so long after the command's end belongs to what it left in the
// background, and nobody waits for it.
constexpr milliseconds kGrace{250};
// Small pieces that come closer together than this are left to gather for as long.
constexpr milliseconds kThick{1};
constexpr std::size_t kSmallPiece = 32u << 10;
constexpr milliseconds kMostKillWait{1000};
constexpr std::size_t kMostEarlySignals = 16;
constexpr int kMostReadsAtOnce = 32;
// Of a command that says much, so that it is not woken for every 64 kB; as far as we may.
constexpr int kPipeBytes = 256 << 10;
constexpr std::int64_t kMostInTerminal = 64 << 10;

struct Pipe {
  os::UniqueFd read;
  os::UniqueFd write;
};

Attempt<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Fail(FailureKind::kStartFailed, "make a pipe for the command", errno);
  }
  return Pipe{os::UniqueFd(ends[0]), os::UniqueFd(ends[1])};
}

void SetNonBlocking(const os::UniqueFd& fd) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

std::string StartText(StartStage stage, const std::string& program, const std::string& cwd) {
  switch (stage) {
    case StartStage::kFork:
      return "start a process for " + program;
    case StartStage::kTerminal:
      return "give " + program + " its streams";
    case StartStage::kDirectory:
      return "change to the directory " + cwd;
    case StartStage::kProgram:
      break;
  }
  return "execute " + program;
}

// By its descriptor, whatever lies at its path; gVisor knows it by path alone.
os::UniqueFd OtherEnd(int master) {
  constexpr int kFlags = O_RDWR | O_NOCTTY | O_CLOEXEC;
  os::UniqueFd end(::ioctl(master, TIOCGPTPEER, kFlags));
  unsigned number = 0;
  if (end.valid() || errno != ENOTTY || ::ioctl(master, TIOCGPTN, &number) != 0) return end;
  return os::UniqueFd(::open(("/dev/pts/" + std::to_string(number)).c_str(), kFlags | O_NOFOLLOW));
}

}  // namespace

Attempt<CommandStreams> Child::MakePipes(bool input_open) {
  CommandStreams streams;
  for (const OutputStream stream : {OutputStream::kStdout, OutputStream::kStderr}) {
    auto made = MakePipe();
    if (!made) return std::unexpected(made.error());
    ::fcntl(made->read.get(), F_SETPIPE_SZ, kPipeBytes);
    (stream == OutputStream::kStdout ? streams.output : streams.errors) = std::move(made->write);
    AddOutput(stream, std::move(made->read));
  }
  auto made = MakePipe();
  if (!made) return std::unexpected(made.error());
  streams.input = std::move(made->read);
  input_closed_ = !input_open;
  if (input_open) SetInput(std::move(made->write));
  return streams;
}

Attempt<CommandStreams> Child::MakeTerminal(Pty size) {
  is_pty_ = true;
  os::UniqueFd master(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  int unlocked = 0;
  if (!master.valid() || ::ioctl(master.get(), TIOCSPTLCK, &unlocked) != 0) {
    return Fail(FailureKind::kStartFailed, "open a terminal (/dev/ptmx)", errno);
  }
  CommandStreams streams;
  streams.input = OtherEnd(master.get());
  if (!streams.input.valid()) {
    return Fail(FailureKind::kStartFailed, "open the other end of a terminal", errno);
  }
  const winsize window{.ws_row = size.rows, .ws_col = size.columns, .ws_xpixel = 0, .ws_ypixel = 0};
  ::ioctl(master.get(), TIOCSWINSZ, &window);
  os::UniqueFd to_write(::fcntl(master.get(), F_DUPFD_CLOEXEC, 3));
  if (!to_write.valid()) return Fail(FailureKind::kStartFailed, "open a terminal", errno);
  SetInput(std::move(to_write));
  AddOutput(OutputStream::kPty, std::move(master));
  return streams;
}

void Child::AddOutput(OutputStream stream, os::UniqueFd fd) {
  SetNonBlocking(fd);
  Output& output = outputs_[stream == OutputStream::kStderr ? 1 : 0];
  output.stream = stream;
  output.source =
      std::make_unique<EventSource>(table_.loop_, std::move(fd), [this, &output](std::uint32_t) {
        if (!started_) TakeReports();
        ReadOutput(output);
        TellExitIfDrained();
        LeaveIfDone();
      });
  output.source->Want(EPOLLIN);
}

void Child::SetInput(os::UniqueFd fd) {
  SetNonBlocking(fd);
  input_ = std::make_unique<EventSource>(table_.loop_, std::move(fd),
                                         [this](std::uint32_t) { WriteInput(); });
}

Attempt<void> Child::Start(const Command& command, bool input_open) {
  program_ = command.argv[0];
  cwd_ = command.cwd;
  auto reports = MakePipe();
  if (!reports) return std::unexpected(reports.error());
  SetNonBlocking(reports->read);
  auto streams = command.pty ? MakeTerminal(*command.pty) : MakePipes(input_open);
  if (!streams) return std::unexpected(streams.error());
  auto sent = table_.spawner_.Start(command, *std::move(streams), std::move(reports->write));
  if (!sent) return sent;
  reports_ = std::make_unique<EventSource>(table_.loop_, std::move(reports->read),
                                           [this](std::uint32_t) { ReadReports(); });
  reports_->Want(EPOLLIN);
  return {};
}

void Child::ReadReports() {
  TakeReports();
  LeaveIfDone();
}

void Child::TakeReports() {
  while (reports_ != nullptr) {
    SupervisorReport report{};
    const ssize_t count = ::read(reports_->fd(), &report, sizeof report);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (count == sizeof report) {
      TakeReport(report);
    } else {
      OnSupervisorGone();
    }
  }
}

void Child::TakeReport(const SupervisorReport& report) {
  switch (report.kind) {
    case SupervisorReport::Kind::kBegun:
      leader_ = report.a;
      supervisor_ = report.b;
      break;
    case SupervisorReport::Kind::kStarted:
      TellStarted();
      break;
    case SupervisorReport::Kind::kFailedToStart: {
      const std::string what = StartText(static_cast<StartStage>(report.b), program_, cwd_);
      FailStart(Fail(FailureKind::kStartFailed, what, report.a).error());
      break;
    }
    case SupervisorReport::Kind::kEnded:
      OnReaped(leader_, report.a);
      break;
    case SupervisorReport::Kind::kAllEnded:
      all_ended_ = true;
      break;
  }
}

void Child::TellStarted() {
  if (start_failed_ || leader_ <= 0 || std::exchange(started_, true)) return;
  table_.on_activity_();
  for (const int signal : std::exchange(early_signals_, {})) Signal(signal);
  if (kill_asked_) KillMore();
  if (listener_ != nullptr) listener_->OnStarted();
}

void Child::FailStart(const Failure& failure) {
  if (started_ || std::exchange(start_failed_, true)) return;
  leader_ = -1;
  for (Output& output : outputs_) table_.loop_.Retire(output.source);
  if (listener_ != nullptr) listener_->OnStartFailed(failure);
}

void Child::OnSupervisorGone() {
  table_.loop_.Retire(reports_);
  // The supervisor was killed before it could say that the command is there.
  if (leader_ > 0) TellStarted();
  if (!started()) {
    FailStart(Fail(FailureKind::kStartFailed,
                   "start " + program_ + ": what starts commands was killed; try again")
                  .error());
  } else if (!leader_exited() && leader_ != reaped_ && ::kill(leader_, 0) != 0) {
    end_unknown_ = true;
    if (listener_ != nullptr) listener_->OnEndUnknown();
  }
  // Otherwise the command is the agent's own child by now, whose end comes with OnReaped.
  if (kill_asked_ && started()) KillMore();
  EndTreeIfNothingIsLeft();
}

// What there is of the command. When its supervisor was killed, all that it had started came to the
// agent, like what was left of other such commands: what is in the session of none that still runs
// is taken for this one's, since it may have been made to look so.
std::vector<ProcessEntry> Child::Left(const std::vector<ProcessEntry>& all) const {
  std::vector<ProcessEntry> left = Descendants(all, supervisor_);
  if (reports_ != nullptr || all_ended_) return left;
  for (const ProcessEntry& orphan : Orphans(all)) {
    const bool is_of_other = std::ranges::any_of(table_.children_, [&](const auto& other) {
      return other.get() != this && !other->leader_exited() && other->leader_ == orphan.session;
    });
    if (is_of_other) continue;
    left.push_back(orphan);
    std::ranges::copy(Descendants(all, orphan.pid), std::back_inserter(left));
  }
  return left;
}

void Child::EndTreeIfNothingIsLeft() {
  if (reports_ != nullptr || tree_ended_) return;
  if (started() && !leader_exited()) return;
  // A supervisor that is being killed gives away its children after its end of the pipe.
  const bool was_killed = started() && !all_ended_;
  if (was_killed && (supervisor_ > 0 || !Left(ListProcesses()).empty())) return;
  tree_ended_ = true;
  if (listener_ != nullptr) listener_->OnTreeEnded();
}

void Child::OnReaped(pid_t pid, int wait_status) {
  if (!started_ && reports_ != nullptr) {  // what the supervisor has said came first
    reaped_ = pid;
    ReadReports();
    reaped_ = -1;
  }
  if (pid == supervisor_) {
    supervisor_ = -1;
    if (kill_asked_ && reports_ == nullptr) KillMore();
  }
  if (leader_exited()) {  // perhaps this was the last of what it left
    EndTreeIfNothingIsLeft();
    return LeaveIfDone();
  }
  if (pid != leader_) return;
  TellStarted();  // it would have said that it could not
  if (!started_) return;
  status_ = wait_status;
  table_.on_activity_();
  EndInput();
  Drain();
  EndTreeIfNothingIsLeft();
  LeaveIfDone();
}

// What the command wrote is in the pipes now.
void Child::Drain() {
  for (Output& output : outputs_) {
    if (output.source == nullptr) continue;
    int left = 0;
    const bool known = !is_pty_ && ::ioctl(output.source->fd(), FIONREAD, &left) == 0;
    output.left = known ? left : kMostInTerminal;
  }
  grace_ = std::make_unique<Timer>(table_.loop_, [this] {
    grace_over_ = true;
    for (Output& output : outputs_) ReadOutput(output);
    TellExitIfDrained();
    LeaveIfDone();
  });
  grace_->Set(kGrace);
  for (Output& output : outputs_) {
    for (int i = 0; i < kMostReadsAtOnce && ReadOutput(output); ++i) continue;
  }
  PauseOutput(output_paused_);  // what was left to gather
  TellExitIfDrained();
}

// One piece; false when there is none now.
bool Child::ReadOutput(Output& output) {
  if (output.source == nullptr || output_paused_) return false;
  auto& buffer = table_.buffer_;
  const ssize_t count = ::read(output.source->fd(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    if (errno == EAGAIN) output.left = 0;
    return false;
  }
  if (count <= 0) {  // EIO: nobody has the terminal open any more
    table_.loop_.Retire(output.source);
    return false;
  }
  output.left -= count;
  table_.output_bytes_ += static_cast<std::uint64_t>(count);
  table_.on_activity_();
  TellStarted();  // it says something, whether we have heard yet that it began or not
  if (listener_ != nullptr) {
    listener_->OnOutput(output.stream, {buffer.data(), static_cast<std::size_t>(count)});
  }
  Gather(output, static_cast<std::size_t>(count));
  return true;
}

// A command that writes small pieces thick and fast would be slowed down by being heard at once.
void Child::Gather(Output& output, std::size_t count) {
  const auto now = Clock::now();
  const bool is_thick = now - std::exchange(output.last_read, now) < kThick;
  if (!is_thick || count >= kSmallPiece || status_ || output.source == nullptr) return;
  output.source->Want(0);
  if (gathered_ == nullptr) {
    gathered_ = std::make_unique<Timer>(table_.loop_, [this] { PauseOutput(output_paused_); });
  }
  if (!gathered_->is_set()) gathered_->Set(kThick);
}

void Child::TellExitIfDrained() {
  if (exit_told_ || !status_) return;
  for (const Output& output : outputs_) {
    if (output.source != nullptr && (!grace_over_ || output.left > 0)) return;
  }
  exit_told_ = true;
  grace_->Clear();
  if (listener_ != nullptr) listener_->OnExit(*status_);
}

void Child::PauseOutput(bool pause) {
  output_paused_ = pause;
  for (const Output& output : outputs_) {
    if (output.source != nullptr) output.source->Want(pause ? 0U : EPOLLIN);
  }
}

bool Child::Write(std::string_view bytes) {
  if (input_closed_ || closes_input_) return false;
  const bool was_empty = pending_input_.empty();
  pending_input_ += bytes;
  if (was_empty) WriteInput();
  return true;
}

void Child::WriteInput() {
  while (input_ != nullptr && !pending_input_.empty()) {
    const ssize_t count = ::write(input_->fd(), pending_input_.data(), pending_input_.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) {  // it has closed its input
      EndInput();
      break;
    }
    pending_input_.erase(0, static_cast<std::size_t>(count));
  }
  if (input_ != nullptr) input_->Want(pending_input_.empty() ? 0U : EPOLLOUT);
  if (pending_input_.empty() && closes_input_) EndInput();
  if (listener_ != nullptr) listener_->OnInputTaken();
}

void Child::CloseInput() {
  if (input_closed_ || closes_input_) return;
  if (is_pty_) {
    termios modes{};
    const bool known = ::tcgetattr(input_->fd(), &modes) == 0;
    const char end_of_file = known ? static_cast<char>(modes.c_cc[VEOF]) : '\x04';
    Write({&end_of_file, 1});
    return;
  }
  closes_input_ = true;
  if (pending_input_.empty()) EndInput();
}

void Child::EndInput() {
  input_closed_ = true;
  pending_input_.clear();
  table_.loop_.Retire(input_);
}

void Child::Resize(Pty size) {
  if (!is_pty_ || outputs_[0].source == nullptr) return;
  const winsize window{.ws_row = size.rows, .ws_col = size.columns, .ws_xpixel = 0, .ws_ypixel = 0};
  ::ioctl(outputs_[0].source->fd(), TIOCSWINSZ, &window);
}

pid_t Child::ForegroundGroup() const {
  if (!is_pty_ || outputs_[0].source == nullptr) return -1;
  pid_t group = -1;
  return ::ioctl(outputs_[0].source->fd(), TIOCGPGRP, &group) == 0 && group > 1 ? group : -1;
}

void Child::Signal(int signal) {
  if (start_failed_ || tree_ended_) return;
  if (!started()) {
    if (early_signals_.size() < kMostEarlySignals) early_signals_.push_back(signal);
    return;
  }
  if (leader_exited()) return SignalTree(signal);
  const bool is_of_terminal = signal == SIGINT || signal == SIGQUIT || signal == SIGWINCH;
  const pid_t foreground = is_of_terminal ? ForegroundGroup() : -1;
  ::kill(foreground > 1 ? -foreground : -leader_, signal);
}

void Child::SignalTree(int signal) {
  if (!started() || tree_ended_) return;
  const bool has_group = !leader_exited();
  if (has_group) ::kill(-leader_, signal);
  for (const ProcessEntry& process : Left(ListProcesses())) {
    if (!has_group || process.group != leader_) SendSignal(process, signal);
  }
}

void Child::Kill() {
  if (std::exchange(kill_asked_, true)) return;
  if (started()) KillMore();
}

void Child::KillMore() {
  if (tree_ended_) return;
  // The group dies at once, however fast it forks.
  if (!leader_exited()) ::kill(-leader_, SIGKILL);
  const bool is_first = kill_timer_ == nullptr;
  if (is_first) kill_timer_ = std::make_unique<Timer>(table_.loop_, [this] { KillMore(); });
  // The supervisor tells when the group was all there is; without it nobody does.
  if (!is_first || reports_ == nullptr) KillAll([this](const auto& all) { return Left(all); });
  kill_timer_->Set(kill_wait_);
  kill_wait_ = std::min(2 * kill_wait_, kMostKillWait);
}

void Child::Detach() {
  listener_ = nullptr;
  EndInput();
  if (output_paused_) PauseOutput(false);
  LeaveIfDone();
}

void Child::LeaveIfDone() {
  if (listener_ != nullptr || reports_ != nullptr) return;
  if (!start_failed_ && !leader_exited()) return;
  if (kill_asked_ && !tree_ended_) return;
  for (Output& output : outputs_) {
    if (kill_asked_) table_.loop_.Retire(output.source);
    if (output.source != nullptr) return;
  }
  if (!std::exchange(left_, true)) table_.Remove(this);
}

Attempt<Child*> ChildTable::Start(const Command& command, bool input_open,
                                  ChildListener* listener) {
  if (command.argv.empty() || command.argv[0].empty()) {
    return Fail(FailureKind::kBadRequest, "a command needs a program to execute");
  }
  auto child = std::make_unique<Child>(*this, listener);
  if (auto started = child->Start(command, input_open); !started) {
    return std::unexpected(started.error());
  }
  children_.push_back(std::move(child));
  return children_.back().get();
}

void ChildTable::OnReaped(pid_t pid, int wait_status) {
  for (auto next = children_.begin(); next != children_.end();) {
    Child& child = **next++;  // it may leave the list
    child.OnReaped(pid, wait_status);
  }
}

void ChildTable::Remove(Child* child) {
  const auto found = std::ranges::find(children_, child, &std::unique_ptr<Child>::get);
  if (found == children_.end()) return;
  loop_.Dispose(std::move(*found));
  children_.erase(found);
}

}  // namespace caisson::agent::guest
