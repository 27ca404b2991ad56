// SPDX-License-Identifier: Apache-2.0
// One script run in a process that is watched from outside: messages and standard streams come out
// under limits, and how it ended is said here and nowhere else. Whoever made the process says by
// the hooks what it knows of it. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "isolate/channel.h"
#include "isolate/pace.h"
#include "isolate/script.h"
#include "os/fd.h"

namespace caisson::isolate {

// Our ends; they do not block.
struct GuestStreams {
  os::UniqueFd channel;
  os::UniqueFd out;
  os::UniqueFd err;
};

// The outcome of a run that has less memory than its interpreter needs.
ScriptOutcome TooLittleMemory(std::uint64_t limit, std::uint64_t least);

class Supervision {
 public:
  Supervision(const Supervision&) = delete;
  Supervision& operator=(const Supervision&) = delete;

 protected:
  // All but the streams outlive it.
  Supervision(GuestStreams streams, const ScriptJob& job, ScriptSink& sink);
  virtual ~Supervision() = default;

  // Readable when there is something for HandleEvent, which says whether more is to come.
  virtual int EventFd() const = 0;
  virtual bool HandleEvent() = 0;
  // CPU time of the script so far; empty when the process has ended.
  virtual std::optional<std::chrono::nanoseconds> CpuNow() const = 0;
  // Bytes that the script had at most, as the host counts them: reserved ones included where its
  // process can be looked at.
  virtual std::uint64_t MemoryPeak() const = 0;
  // Called at least this often while the script runs, for what no event tells.
  virtual std::chrono::milliseconds LookEvery() const { return std::chrono::minutes(1); }
  virtual void Look() {}
  // A frame that is neither a message nor the report. The script's own word by default.
  virtual void HandleOtherFrame(const ChannelFrame& frame);

  // Until the report, a limit, `stop` or the last event; what the pipes then hold is taken, too.
  void Supervise(const std::stop_token& stop);
  // The first word on how the run ended stands.
  void End(Fault fault, std::string message);
  // Of a process that ended by itself, with no report.
  void EndByExit(int code);
  void EndBySignal(int signal);
  void EndByMemory();
  // What was written before now.
  void Drain();

  bool ended() const { return ended_; }
  // By a report; the process is about to end by itself.
  bool reported() const { return reported_; }
  // As last seen.
  std::chrono::nanoseconds cpu_used() const { return cpu_used_; }
  ScriptOutcome& outcome() { return outcome_; }
  std::chrono::steady_clock::time_point begin() const { return begin_; }

 private:
  // One of the script's standard streams on its way to the sink.
  struct Stream {
    os::UniqueFd* fd;
    MessageKind kind;
    std::uint64_t* dropped;
    std::uint64_t taken = 0;
  };

  int Timeout();
  std::chrono::nanoseconds CpuUsed();
  void CheckClocks();
  void ReadStream(Stream& stream);
  void TakeFromStream(Stream& stream, std::string_view bytes);
  std::uint64_t Room() const;
  void ReadChannel();
  void TakeFrames();
  void HandleFrame(const ChannelFrame& frame);
  void HandleReport(std::string_view text);
  void JudgeMemory();

  GuestStreams streams_;
  const ScriptJob& job_;
  ScriptSink& sink_;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::nanoseconds cpu_used_{0};
  std::optional<std::chrono::steady_clock::time_point>
      settled_;  // when the first final result came
  ChannelReader reader_;
  Pace pace_;
  Stream out_{};
  Stream err_{};
  std::uint64_t messages_ = 0;
  bool ended_ = false;
  bool reported_ = false;
  ScriptOutcome outcome_;
};

}  // namespace caisson::isolate
