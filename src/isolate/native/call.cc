// SPDX-License-Identifier: Apache-2.0
#include "isolate/native/call.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <optional>
#include <string>
#include <utility>

#include "isolate/native/channel.h"
#include "isolate/script_report.h"
#include "os/process.h"

namespace caisson::isolate::native {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::uint64_t kReportBytes = 1u << 20;
// After the first final result the script may end by itself, for what it still prints.
constexpr milliseconds kGrace{1'000};
constexpr std::size_t kChunk = 64u << 10;

// CPU time of a whole process that need not be our child.
std::optional<nanoseconds> CpuOf(pid_t pid) {
  timespec time{};
  clockid_t clock = 0;
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) {
    return std::nullopt;
  }
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

// One of the script's standard streams on its way to the sink.
struct Stream {
  os::UniqueFd* fd;
  MessageKind kind;
  std::uint64_t* dropped;
  std::uint64_t taken = 0;
};

class Supervision {
 public:
  Supervision(StartedCall call, const ScriptJob& job, ScriptSink& sink)
      : call_(std::move(call)), job_(job), sink_(sink), begin_(Clock::now()) {
    cpu_before_ = CpuOf(call_.spare.pid).value_or(nanoseconds(0));
    out_ = {&call_.out, MessageKind::kStdout, &outcome_.stdout_dropped};
    err_ = {&call_.err, MessageKind::kStderr, &outcome_.stderr_dropped};
  }

  // Empty when the process was gone before the script could run.
  Result<std::optional<ScriptOutcome>> Run(const std::stop_token& stop);
  bool zygote_lost() const { return zygote_lost_; }
  Spare TakeSpare() { return std::move(call_.spare); }

 private:
  void Loop(int stop_fd);
  int Timeout();
  // Of the script; what its process used before it had one does not count.
  nanoseconds CpuUsed() {
    const auto now = CpuOf(call_.spare.pid);
    // A process that has ended has no clock any more.
    if (now) cpu_used_ = std::max(cpu_used_, *now - cpu_before_);
    return cpu_used_;
  }
  void CheckClocks();
  void ReadStream(Stream& stream);
  std::uint64_t Room() const;
  void ReadChannel();
  void HandleFrame(const ChannelFrame& frame);
  void HandleReport(std::string_view text);
  bool HandleReply();
  void Drain();
  void Finish();
  void Explain();
  void ExplainExit(int status);

  // The first word on how the run ended stands.
  void End(Fault fault, std::string message);

  StartedCall call_;
  const ScriptJob& job_;
  ScriptSink& sink_;
  Clock::time_point begin_;
  nanoseconds cpu_before_{0};
  nanoseconds cpu_used_{0};
  std::optional<Clock::time_point> settled_;  // when the first final result came
  ChannelReader reader_;
  Stream out_{};
  Stream err_{};
  std::uint64_t messages_ = 0;
  bool ended_ = false;
  std::optional<Reply> exit_;  // the zygote's word on the process
  bool zygote_lost_ = false;
  bool entered_ = false;  // else nothing of the script has run
  ScriptOutcome outcome_;
};

void Supervision::End(Fault fault, std::string message) {
  if (ended_) return;
  ended_ = true;
  // What was settled stays settled: nothing after it is an error of the run.
  if (settled_) return;
  outcome_.fault = fault;
  outcome_.message = std::move(message);
}

int Supervision::Timeout() {
  const auto now = Clock::now();
  auto left = std::chrono::duration_cast<milliseconds>(begin_ + job_.limits.wall_clock - now);
  if (settled_) {
    left = std::min(left, std::chrono::duration_cast<milliseconds>(*settled_ + kGrace - now));
  }
  if (job_.limits.cpu.count() > 0) {
    const auto used = CpuUsed();
    const auto rest = std::chrono::duration_cast<milliseconds>(job_.limits.cpu - used);
    // Threads may use it up faster than the clock goes.
    left = std::min(left, std::max(rest / 2, milliseconds(2)));
  }
  return static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, 60'000));
}

void Supervision::CheckClocks() {
  const auto now = Clock::now();
  if (settled_ && now >= *settled_ + kGrace) return End(Fault::kNone, {});
  if (now - begin_ >= job_.limits.wall_clock) {
    return End(Fault::kWallClock, "the script ran longer than its limit of " +
                                      std::to_string(job_.limits.wall_clock.count()) + " ms");
  }
  if (job_.limits.cpu.count() <= 0) return;
  if (CpuUsed() >= job_.limits.cpu) {
    End(Fault::kCpu, "the script used more CPU time than its limit of " +
                         std::to_string(job_.limits.cpu.count()) + " ms");
  }
}

void Supervision::ReadStream(Stream& stream) {
  std::array<char, kChunk> chunk;
  const ssize_t n = ::read(stream.fd->get(), chunk.data(), chunk.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return stream.fd->Reset();
  const auto size = static_cast<std::uint64_t>(n);
  const std::uint64_t limit = job_.limits.stream_bytes;
  const std::uint64_t room = limit == 0 ? size : limit - std::min(limit, stream.taken);
  const std::uint64_t kept = std::min(size, room);
  stream.taken += kept;
  *stream.dropped += size - kept;
  if (kept == 0) return;
  const ScriptMessage message{.kind = stream.kind, .final = false, .text = {chunk.data(), kept}};
  if (!sink_.Take(message)) End(Fault::kKilled, "the receiver of its messages ended the run");
}

void Supervision::HandleReport(std::string_view text) {
  if (ended_) return;
  (void)CpuUsed();
  if (!settled_ && !ReadScriptReport(text, outcome_)) {
    return End(Fault::kProtocol, "the end of the script was reported in no known form");
  }
  if (outcome_.fault == Fault::kRaised && outcome_.error_type == "MemoryError") {
    outcome_.fault = Fault::kMemory;
  }
  ended_ = true;
}

void Supervision::HandleFrame(const ChannelFrame& frame) {
  if (frame.kind == kReportFrame) return HandleReport(frame.payload);
  const auto kind = static_cast<MessageKind>(frame.kind);
  if (settled_) {
    outcome_.late_done += kind == MessageKind::kDone ? 1 : 0;
    outcome_.late_debug += kind == MessageKind::kDebug ? 1 : 0;
    return;
  }
  outcome_.usage.output_bytes += frame.payload.size();
  if (job_.limits.messages != 0 && ++messages_ > job_.limits.messages) {
    return End(Fault::kMessages, "the script sent more messages than its limit of " +
                                     std::to_string(job_.limits.messages));
  }
  const ScriptMessage message{.kind = kind, .final = frame.final, .text = frame.payload};
  const bool goes_on = sink_.Take(message);
  if (message.kind == MessageKind::kDone && message.final) settled_ = Clock::now();
  if (!goes_on) End(Fault::kKilled, "the receiver of its messages ended the run");
}

// How large a message may be. Once settled, none is taken any more, so none need be kept.
std::uint64_t Supervision::Room() const {
  if (settled_) return kReportBytes;
  const std::uint64_t limit = job_.limits.output_bytes;
  return limit == 0 ? ~0ull : limit - outcome_.usage.output_bytes;
}

void Supervision::ReadChannel() {
  std::array<char, kChunk> chunk;
  const ssize_t n = ::recv(call_.channel.get(), chunk.data(), chunk.size(), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return call_.channel.Reset();
  reader_.Append({chunk.data(), static_cast<std::size_t>(n)});
  while (!ended_) {
    ChannelFrame frame;
    const std::uint64_t room = Room();
    const auto state = reader_.Next(std::max(room, kReportBytes), frame);
    if (state == ChannelReader::State::kMore) return;
    if (state == ChannelReader::State::kBroken) {
      return End(Fault::kProtocol, "something other than messages was written to the channel");
    }
    const bool fits = state == ChannelReader::State::kFrame &&
                      (frame.kind == kReportFrame || frame.payload.size() <= room);
    if (!fits) {
      return End(Fault::kOutput, "the script's results are larger than its limit of " +
                                     std::to_string(job_.limits.output_bytes) + " bytes");
    }
    HandleFrame(frame);
  }
}

// False when there is nothing more to come.
bool Supervision::HandleReply() {
  const auto reply = ReceiveReply(call_.spare.socket.get(), 0, nullptr);
  if (reply && reply->kind == ReplyKind::kEntered) return entered_ = true;
  exit_ = reply;
  zygote_lost_ = !reply;
  call_.spare.socket.Reset();
  return false;
}

void Supervision::Loop(int stop_fd) {
  while (!ended_) {
    std::array<pollfd, 5> events = {{{call_.channel.get(), POLLIN, 0},
                                     {call_.out.get(), POLLIN, 0},
                                     {call_.err.get(), POLLIN, 0},
                                     {call_.spare.socket.get(), POLLIN, 0},
                                     {stop_fd, POLLIN, 0}}};
    const int ready = ::poll(events.data(), events.size(), Timeout());
    if (ready < 0 && errno != EINTR) return End(Fault::kKilled, "it could not be waited for");
    if (events[4].revents != 0) return End(Fault::kKilled, "the run was cancelled");
    if (ready > 0 && events[1].revents != 0) ReadStream(out_);
    if (ready > 0 && events[2].revents != 0) ReadStream(err_);
    if (ready > 0 && events[0].revents != 0) ReadChannel();
    // After the others, which hold what was written before the end.
    if (ready > 0 && events[3].revents != 0 && !HandleReply()) return Drain();
    CheckClocks();
  }
}

// What the pipes still hold; more does not come, or does not count.
void Supervision::Drain() {
  const auto pending = [](const os::UniqueFd& fd) {
    pollfd event{fd.get(), POLLIN, 0};
    return fd.valid() && ::poll(&event, 1, 0) > 0;
  };
  const auto until = Clock::now() + kGrace;
  while (pending(call_.channel) && !ended_ && Clock::now() < until) ReadChannel();
  while (pending(call_.out) && Clock::now() < until) ReadStream(out_);
  while (pending(call_.err) && Clock::now() < until) ReadStream(err_);
}

void Supervision::ExplainExit(int status) {
  const std::string kept = "; results delivered before it stand";
  if (call_.spare.cgroup.OomKills() > 0) {
    return End(Fault::kMemory, "the script used more memory than its limit of " +
                                   std::to_string(job_.limits.memory_bytes) +
                                   " bytes and was killed" + kept);
  }
  if (WIFEXITED(status)) {
    outcome_.exit_code = WEXITSTATUS(status);
    outcome_.error_type = "SystemExit";
    return End(Fault::kExited, "the script ended the interpreter with exit code " +
                                   std::to_string(outcome_.exit_code) + kept);
  }
  const os::ExitStatus how{.code = 0, .signal = WTERMSIG(status)};
  if (how.signal == SIGXCPU) {
    return End(Fault::kCpu, "the script used more CPU time than its limit" + kept);
  }
  if (how.signal == SIGKILL || how.signal == SIGTERM) {
    return End(Fault::kKilled, "the interpreter " + os::ToText(how) + " from outside" + kept);
  }
  End(Fault::kArtifact, "the interpreter crashed: it " + os::ToText(how) + kept);
}

void Supervision::Explain() {
  if (ended_) return;
  if (exit_ && exit_->kind == ReplyKind::kEnded) return ExplainExit(exit_->status);
  End(Fault::kKilled,
      "the interpreter's zygote died during the run; results delivered before it stand");
}

void Supervision::Finish() {
  outcome_.usage.wall = Clock::now() - begin_;
  outcome_.usage.memory_bytes = call_.spare.cgroup.MemoryBytes();
  outcome_.cpu = exit_ ? nanoseconds(exit_->cpu_ns) - cpu_before_ : CpuUsed();
  ::syscall(SYS_pidfd_send_signal, call_.spare.pidfd.get(), SIGKILL, nullptr, 0);
}

Result<std::optional<ScriptOutcome>> Supervision::Run(const std::stop_token& stop) {
  const os::UniqueFd stop_event(::eventfd(0, EFD_CLOEXEC));
  const std::stop_callback on_stop(stop, [&stop_event] {
    const std::uint64_t one = 1;
    (void)!::write(stop_event.get(), &one, sizeof one);
  });
  Loop(stop_event.get());
  if (!ended_ && !entered_ && !(exit_ && exit_->kind == ReplyKind::kFailed)) return std::nullopt;
  Explain();
  // The harness has flushed the streams before it reported.
  Drain();
  if (exit_ && exit_->kind == ReplyKind::kFailed) return WallFailure(*exit_);
  Finish();
  return std::move(outcome_);
}

}  // namespace

Result<CallResult> RunCall(Spare spare, const NativeOptions& options, const ScriptJob& job,
                           ScriptSink& sink, const std::stop_token& stop) {
  CAISSON_ASSIGN(std::optional<StartedCall> call, StartScript(std::move(spare), options, job));
  if (!call) return CallResult{};
  Supervision supervision(*std::move(call), job, sink);
  CAISSON_ASSIGN(std::optional<ScriptOutcome> outcome, supervision.Run(stop));
  return CallResult{.outcome = std::move(outcome),
                    .zygote_lost = supervision.zygote_lost(),
                    .ended = supervision.TakeSpare()};
}

}  // namespace caisson::isolate::native
