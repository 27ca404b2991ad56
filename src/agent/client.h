// SPDX-License-Identifier: Apache-2.0
// The host's side of a machine's agent. Blocking; one connection (a stream socket, from
// machine::Driver::Connect) is one operation, and closing it cancels that: what a destroyed object
// had started is ended. Nothing that comes from the agent is trusted: it may be the guest's by now.
//
// A Status says that *we* or the operation failed (agent.*); what a command did is an event. A
// connection that breaks is agent.connection_lost, never an exit code. An agent that says nothing
// for kPatience while an answer is due is agent.no_answer.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/connection.h"
#include "agent/messages.h"
#include "base/status.h"
#include "os/fd.h"

namespace caisson::agent {

using std::chrono::milliseconds;

// --- commands ---

struct ExecEvent {
  enum class Kind : std::uint8_t {
    kStarted,  // first, unless kFailedToStart is
    kStdout,   // a terminal's output, too
    kStderr,
    kExit,           // last
    kHeartbeat,      // nothing else came
    kFailedToStart,  // last: `data` says why, `error` is the errno
  };
  Kind kind = Kind::kHeartbeat;
  std::string_view data;   // until the next call
  int pid = 0;             // kStarted
  int exit_code = 0;       // kExit; meaningful when signal == 0
  int signal = 0;          // kExit: what ended the leader
  bool timed_out = false;  // kExit: its timeout ended it
  int error = 0;           // kFailedToStart: ENOENT, EACCES, …
};

// A command with its streams. Next is for one thread; all else may be called by another meanwhile.
// Destroyed before its end was told, the command is killed with everything that it started.
class Exec {
 public:
  // Returns when the request is sent.
  static Result<Exec> Start(os::UniqueFd connection, const ExecRequest& request);

  // Waits for the next event, at most `wait` (then it is kHeartbeat). A child that keeps the pipes
  // open does not hold kExit back for longer than a second.
  Result<ExecEvent> Next(std::optional<milliseconds> wait = {});
  // All of standard input: Next sends it while it waits, and closes it then. `text` must outlive
  // the object or its last call of Next. Not together with WriteStdin.
  void FeedStdin(std::string_view text);
  // Blocks while the command does not read.
  Result<void> WriteStdin(std::string_view bytes);
  Result<void> CloseStdin();  // of a terminal: sends its end-of-file character
  Result<void> Resize(Pty size);
  Result<void> Signal(int signal);  // to the command's process group
  // From any thread: Next fails with agent.connection_lost, the command is killed.
  void Cancel() { connection_->Shutdown(); }
  int fd() const { return connection_->fd(); }  // readable: Next will not wait long

 private:
  explicit Exec(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
  void FeedSome();

  enum class Feed : std::uint8_t { kNone, kText, kClose, kFlush };
  std::unique_ptr<Connection> connection_;
  std::string_view feed_text_;
  std::string failure_text_;
  Feed feed_ = Feed::kNone;
};

// --- files; paths are absolute and resolved inside the machine ---

// Writes beside the file and takes its place with Commit; missing parents are made. Destroyed
// before, nothing is left of it.
class Upload {
 public:
  static Result<Upload> Start(os::UniqueFd connection, const PutRequest& request);
  // A failure of an earlier piece (agent.no_space, …) is told here or by Commit.
  Result<void> Write(std::string_view bytes);
  Result<std::uint64_t> Commit();  // the file's size

 private:
  explicit Upload(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
  std::unique_ptr<Connection> connection_;
};

class Download {
 public:
  static Result<Download> Start(os::UniqueFd connection, const std::string& path);
  const FileInfo& info() const { return info_; }
  // The next piece, good until the next call; empty at the end. Where info().size is known it is
  // what comes, or the call fails.
  Result<std::string_view> Next();

 private:
  explicit Download(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
  std::unique_ptr<Connection> connection_;
  FileInfo info_;
  std::uint64_t received_ = 0;
  bool ended_ = false;
};

Result<FileInfo> Stat(os::UniqueFd connection, const StatRequest& request);
struct Listing {
  std::vector<FileEntry> entries;  // by name
  bool truncated = false;          // there are more than were asked for
};
Result<Listing> List(os::UniqueFd connection, const ListRequest& request);
// How many files and directories are gone.
Result<std::uint64_t> Remove(os::UniqueFd connection, const RemoveRequest& request);

// --- managed processes: they live on when nobody is connected ---

Result<ProcessView> StartProcess(os::UniqueFd connection, const Command& command);
Result<std::vector<ProcessView>> ListProcesses(os::UniqueFd connection);
Result<ProcessView> GetProcess(os::UniqueFd connection, const std::string& process_id);
// The input's number; agent.input_full when the process does not read.
Result<std::uint64_t> SendInput(os::UniqueFd connection, const InputRequest& request);
Result<void> CloseInput(os::UniqueFd connection, const std::string& process_id);
Result<void> ResizeProcess(os::UniqueFd connection, const ResizeRequest& request);
Result<void> SignalProcess(os::UniqueFd connection, const SignalRequest& request);
// The view once it has ended, or after the timeout as it is then.
Result<ProcessView> WaitProcess(os::UniqueFd connection, const WaitRequest& request);
// SIGTERM to the whole tree, after the grace SIGKILL; the view when all of it has ended.
Result<ProcessView> TerminateProcess(os::UniqueFd connection, const TerminateRequest& request);

// Events after a sequence number, live after that. Events that the window has dropped: one kError
// with oldest_available_seq, and the stream ends.
class ProcessEvents {
 public:
  static Result<ProcessEvents> Connect(os::UniqueFd connection, const ConnectRequest& request);
  // Empty when the stream has ended. kHeartbeat when nothing came within `wait`.
  Result<std::optional<ProcessEvent>> Next(std::optional<milliseconds> wait = {});
  void Cancel() { connection_->Shutdown(); }
  int fd() const { return connection_->fd(); }

 private:
  explicit ProcessEvents(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)) {}
  std::unique_ptr<Connection> connection_;
  bool ended_ = false;
};

// --- streams, and the agent itself ---

// A raw byte stream to a port inside the machine, which keeps half-closes. agent.not_listening when
// nothing accepts there.
Result<os::UniqueFd> Dial(os::UniqueFd connection, const DialRequest& request);

Result<void> Ping(os::UniqueFd connection, milliseconds patience = kPatience);
Result<AgentInfo> Info(os::UniqueFd connection);

// Of an agent that has made its socket itself: it closes that and all connections until it is
// woken by a file (guest/entrance.h), but with commands or streams open fails with agent.busy.
// Returns when its last end is closed.
Result<void> LetGo(os::UniqueFd connection, milliseconds patience = kPatience);
Result<void> Identify(os::UniqueFd connection, const IdentifyRequest& request);

// Tells what the machine asks for about itself, and its activity when it changes, at most once a
// second. Requests that came while nobody watched are told first.
struct WatchEvent {
  std::optional<SelfRequest> self;
  std::optional<Activity> activity;  // neither: nothing came within `wait`
};
class Watch {
 public:
  static Result<Watch> Start(os::UniqueFd connection);
  Result<WatchEvent> Next(std::optional<milliseconds> wait = {});
  void Cancel() { connection_->Shutdown(); }
  int fd() const { return connection_->fd(); }

 private:
  explicit Watch(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
  std::unique_ptr<Connection> connection_;
};

}  // namespace caisson::agent
