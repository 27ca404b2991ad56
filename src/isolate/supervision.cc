// SPDX-License-Identifier: Apache-2.0
#include "isolate/supervision.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <utility>

#include "isolate/script_report.h"
#include "os/process.h"

namespace caisson::isolate {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::uint64_t kReportBytes = 1u << 20;
// After the first final result the script may end by itself, for what it still prints.
constexpr milliseconds kGrace{1'000};
// A share of one half: what was refused may have been as large as all that was there.
constexpr std::uint64_t kNearTheLimit = 2;
constexpr std::size_t kChunk = 64u << 10;
// As many as a pipe or socket can hold, however small the pieces.
constexpr int kMostChunks = 4096;
bool CountsAsOutput(std::uint8_t kind) {
  return kind < kReportFrame && kind != static_cast<std::uint8_t>(MessageKind::kStdout);
}
constexpr const char* kNoMessage = "something other than messages was written to the channel";
constexpr const char* kKept = "; results delivered before it stand";

}  // namespace

ScriptOutcome TooLittleMemory(std::uint64_t limit, std::uint64_t least) {
  return {.fault = Fault::kMemory,
          .message = "the memory limit of " + std::to_string(limit) + " bytes is below the " +
                     std::to_string(least) + " bytes that the interpreter needs"};
}

Supervision::Supervision(GuestStreams streams, const ScriptJob& job, ScriptSink& sink)
    : streams_(std::move(streams)), job_(job), sink_(sink), begin_(Clock::now()) {
  out_ = {&streams_.out, MessageKind::kStdout, &outcome_.stdout_dropped};
  err_ = {&streams_.err, MessageKind::kStderr, &outcome_.stderr_dropped};
}

void Supervision::End(Fault fault, std::string message) {
  if (ended_) return;
  ended_ = true;
  // What was settled stays settled: nothing after it is an error of the run.
  if (settled_) return;
  outcome_.fault = fault;
  outcome_.message = std::move(message);
}

nanoseconds Supervision::CpuUsed() {
  // A process that has ended has no clock any more.
  if (const auto now = CpuNow()) cpu_used_ = std::max(cpu_used_, *now);
  return cpu_used_;
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
  return static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, LookEvery().count()));
}

void Supervision::CheckClocks() {
  Look();
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

void Supervision::TakeFromStream(Stream& stream, std::string_view bytes) {
  const std::uint64_t limit = job_.limits.stream_bytes;
  const std::uint64_t room = limit == 0 ? bytes.size() : limit - std::min(limit, stream.taken);
  const std::uint64_t kept = std::min<std::uint64_t>(bytes.size(), room);
  stream.taken += kept;
  *stream.dropped += bytes.size() - kept;
  if (kept == 0) return;
  const ScriptMessage message{.kind = stream.kind, .final = false, .text = bytes.substr(0, kept)};
  if (!sink_.Take(message)) End(Fault::kKilled, "the receiver of its messages ended the run");
}

void Supervision::ReadStream(Stream& stream) {
  std::array<char, kChunk> chunk;
  const ssize_t n = ::read(stream.fd->get(), chunk.data(), chunk.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return stream.fd->Reset();
  TakeFromStream(stream, {chunk.data(), static_cast<std::size_t>(n)});
}

void Supervision::HandleReport(std::string_view text) {
  if (ended_) return;
  (void)CpuUsed();
  if (!settled_ && !ReadScriptReport(text, outcome_)) {
    return End(Fault::kProtocol, "the end of the script was reported in no known form");
  }
  if (!settled_) JudgeMemory();
  // The harness waits for this when it says that memory was short.
  streams_.channel.Reset();
  reported_ = true;
  ended_ = true;
}

// A report is the script's word, which may be forged; what its process had taken is not.
void Supervision::JudgeMemory() {
  if (outcome_.fault != Fault::kMemory && outcome_.error_type != "MemoryError") return;
  if (MemoryPeak() >= job_.limits.memory_bytes / kNearTheLimit) {
    outcome_.fault = Fault::kMemory;
    outcome_.message = "the script used more memory than its limit of " +
                       std::to_string(job_.limits.memory_bytes) + " bytes";
  } else if (outcome_.fault == Fault::kMemory) {
    outcome_.fault = Fault::kRaised;
    outcome_.error_type = "MemoryError";
  }
}

void Supervision::HandleOtherFrame(const ChannelFrame&) { End(Fault::kProtocol, kNoMessage); }

void Supervision::HandleFrame(const ChannelFrame& frame) {
  if (frame.kind == kReportFrame) return HandleReport(frame.payload);
  if (frame.kind > kReportFrame) return HandleOtherFrame(frame);
  const auto kind = static_cast<MessageKind>(frame.kind);
  if (kind == MessageKind::kStdout) return TakeFromStream(out_, frame.payload);
  if (settled_) {
    outcome_.late_done += kind == MessageKind::kDone ? 1 : 0;
    outcome_.late_debug += kind == MessageKind::kDebug ? 1 : 0;
    return;
  }
  outcome_.usage.output_bytes += frame.payload.size();
  if (++messages_ > job_.limits.messages && job_.limits.messages != 0) {
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
  const ssize_t n = ::read(streams_.channel.get(), chunk.data(), chunk.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return streams_.channel.Reset();
  reader_.Append({chunk.data(), static_cast<std::size_t>(n)});
  const std::uint64_t before = messages_;
  TakeFrames();
  pace_.Heard(messages_ - before, static_cast<std::size_t>(n) == chunk.size());
}

void Supervision::TakeFrames() {
  while (!ended_) {
    ChannelFrame frame;
    const std::uint64_t room = Room();
    const auto state = reader_.Next(std::max(room, kReportBytes), frame);
    if (state == ChannelReader::State::kMore) return;
    if (state == ChannelReader::State::kBroken) {
      return End(Fault::kProtocol, kNoMessage);
    }
    const bool fits = state == ChannelReader::State::kFrame &&
                      (!CountsAsOutput(frame.kind) || frame.payload.size() <= room);
    if (!fits) {
      return End(Fault::kOutput, "the script's results are larger than its limit of " +
                                     std::to_string(job_.limits.output_bytes) + " bytes");
    }
    HandleFrame(frame);
  }
}

void Supervision::Supervise(const std::stop_token& stop) {
  const os::UniqueFd stop_event(::eventfd(0, EFD_CLOEXEC));
  const std::stop_callback on_stop(stop, [&stop_event] {
    const std::uint64_t one = 1;
    (void)!::write(stop_event.get(), &one, sizeof one);
  });
  while (!ended_) {
    const bool pause = streams_.channel.valid() && pace_.ShouldPause();
    std::array<pollfd, 5> events = {{{pause ? -1 : streams_.channel.get(), POLLIN, 0},
                                     {streams_.out.get(), POLLIN, 0},
                                     {streams_.err.get(), POLLIN, 0},
                                     {EventFd(), POLLIN, 0},
                                     {stop_event.get(), POLLIN, 0}}};
    const int longest = pause ? static_cast<int>(Pace::kPause.count()) : INT_MAX;
    const int ready = ::poll(events.data(), events.size(), std::min(Timeout(), longest));
    if (ready < 0 && errno != EINTR) return End(Fault::kKilled, "it could not be waited for");
    if (events[4].revents != 0) return End(Fault::kKilled, "the run was cancelled");
    if (ready > 0 && events[1].revents != 0) ReadStream(out_);
    if (ready > 0 && events[2].revents != 0) ReadStream(err_);
    if (pause || (ready > 0 && events[0].revents != 0)) ReadChannel();
    // After the others, which hold what was written before the end.
    if (ready > 0 && events[3].revents != 0 && !HandleEvent()) return Drain();
    CheckClocks();
  }
}

// What the pipes still hold; more does not come, or does not count.
void Supervision::Drain() {
  const auto pending = [](const os::UniqueFd& fd) {
    pollfd event{fd.get(), POLLIN, 0};
    return fd.valid() && ::poll(&event, 1, 0) > 0;
  };
  // Not by the clock, which goes on while this thread has to wait for a processor.
  for (int i = 0; i < kMostChunks && !ended_ && pending(streams_.channel); ++i) ReadChannel();
  for (int i = 0; i < kMostChunks && pending(streams_.out); ++i) ReadStream(out_);
  for (int i = 0; i < kMostChunks && pending(streams_.err); ++i) ReadStream(err_);
}

void Supervision::EndByMemory() {
  End(Fault::kMemory, "the script used more memory than its limit of " +
                          std::to_string(job_.limits.memory_bytes) + " bytes and was killed" +
                          kKept);
}

void Supervision::EndByExit(int code) {
  // What an unfinished message swallowed may have been the report.
  if (reader_.pending()) return End(Fault::kProtocol, kNoMessage);
  outcome_.exit_code = code;
  outcome_.error_type = "SystemExit";
  End(Fault::kExited,
      "the script ended the interpreter with exit code " + std::to_string(code) + kKept);
}

void Supervision::EndBySignal(int signal) {
  const os::ExitStatus how{.code = 0, .signal = signal};
  if (signal == SIGXCPU) {
    return End(Fault::kCpu, std::string("the script used more CPU time than its limit") + kKept);
  }
  if (signal == SIGKILL || signal == SIGTERM) {
    return End(Fault::kKilled, "the interpreter " + os::ToText(how) + " from outside" + kKept);
  }
  End(Fault::kArtifact, "the interpreter crashed: it " + os::ToText(how) + kKept);
}

}  // namespace caisson::isolate
