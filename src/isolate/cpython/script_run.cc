// SPDX-License-Identifier: Apache-2.0
#include "isolate/cpython/script_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <utility>

#include "isolate/script_report.h"
#include "json/marshal.h"

namespace caisson::isolate::cpython {
namespace {

using std::chrono::nanoseconds;

// What a guest sends beside messages; see runtimes/python/caisson_host.py.
constexpr std::uint8_t kGetJob = 0;
constexpr std::uint8_t kReport = 16;
constexpr std::size_t kHead = 2;

// How long a script may go on once its final result is there.
constexpr auto kGrace = std::chrono::milliseconds(500);

// A year is as good as for ever, and does not overflow a clock.
std::chrono::milliseconds WallClock(const ScriptLimits& limits) {
  return std::min<std::chrono::milliseconds>(limits.wall_clock, std::chrono::hours(24 * 365));
}

// Of the engine's words the cause; the functions of the artifact have no names that would help.
std::string_view CauseOf(std::string_view detail) {
  constexpr std::string_view kMark = "Caused by:";
  const std::size_t mark = detail.rfind(kMark);
  if (mark != std::string_view::npos) detail.remove_prefix(mark + kMark.size());
  constexpr std::string_view kBlank = " \n";
  detail.remove_prefix(std::min(detail.find_first_not_of(kBlank), detail.size()));
  return detail.substr(0, std::min<std::size_t>(detail.find_last_not_of(kBlank) + 1, 2000));
}

std::uint64_t OrEndless(std::uint64_t limit) { return limit == 0 ? UINT64_MAX : limit; }

nanoseconds ThreadCpu() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

}  // namespace

Result<std::string> EncodeJob(const ScriptJob& job) {
  CAISSON_ASSIGN(const std::string inputs, json::ToMarshal(job.inputs));
  const std::array<std::uint64_t, 4> head = {static_cast<std::uint64_t>(job.entry),
                                             job.source.size(), inputs.size(), job.options.size()};
  std::string text(sizeof head, '\0');
  std::memcpy(text.data(), head.data(), sizeof head);
  text.reserve(text.size() + job.source.size() + inputs.size() + job.options.size());
  return text.append(job.source).append(inputs).append(job.options);
}

ScriptRun::ScriptRun(const GuestFiles& files, const ScriptJob& job, std::string job_text,
                     ScriptSink& sink, const std::function<bool()>& cancelled)
    : GuestSystem(SystemOptions(OrEndless(job.limits.disk_bytes))),
      job_(&job),
      job_text_(std::move(job_text)),
      sink_(&sink),
      cancelled_(&cancelled),
      cpu_at_start_(ThreadCpu()),
      deadline_(start_ + WallClock(job.limits)) {
  FillSystem(*this, files);
  set_output([this](Stream stream, std::string_view text) {
    TakeOutput(stream == Stream::kErr ? MessageKind::kStderr : MessageKind::kStdout, text);
  });
  // Sleep ends when the run must; MayGoOn then says why.
  set_time_left([this] { return MayGoOn() ? TimeLeft() : nanoseconds(0); });
}

nanoseconds ScriptRun::TimeLeft() const { return deadline_ - Clock::now(); }
nanoseconds ScriptRun::CpuUsed() const { return ThreadCpu() - cpu_at_start_; }

bool ScriptRun::Stop(Fault fault, std::string message) {
  if (!stopped_ && !settled_) {
    outcome_.fault = fault;
    outcome_.message = std::move(message);
  }
  stopped_ = true;
  return false;
}

bool ScriptRun::MayGoOn() {
  if (stopped_) return false;
  if ((*cancelled_)()) return Stop(Fault::kKilled, "the run was cancelled");
  if (TimeLeft() <= nanoseconds(0)) {
    return Stop(Fault::kWallClock, fmt::format("the script ran longer than its limit of {} ms",
                                               job_->limits.wall_clock.count()));
  }
  if (job_->limits.cpu.count() > 0 && CpuUsed() >= job_->limits.cpu) {
    return Stop(Fault::kCpu, fmt::format("the script used more CPU time than its limit of {} ms",
                                         job_->limits.cpu.count()));
  }
  return true;
}

std::optional<std::string> ScriptRun::HostCall(std::string_view request) {
  if (!MayGoOn()) return std::nullopt;
  if (request.size() < kHead) {
    Stop(Fault::kProtocol, "the script called the host with something that is no message");
    return std::nullopt;
  }
  const auto kind = static_cast<std::uint8_t>(request[0]);
  const bool final = request[1] != 0;
  const std::string_view text = request.substr(kHead);
  if (kind == kGetJob) return job_text_;
  bool goes_on = false;
  if (kind == kReport) {
    goes_on = TakeReport(text);
  } else if (kind >= static_cast<std::uint8_t>(MessageKind::kDone) &&
             kind <= static_cast<std::uint8_t>(MessageKind::kWarning)) {
    goes_on = TakeMessage(static_cast<MessageKind>(kind), final, text);
  } else if (kind >= static_cast<std::uint8_t>(MessageKind::kStdout) &&
             kind <= static_cast<std::uint8_t>(MessageKind::kStderr)) {
    TakeOutput(static_cast<MessageKind>(kind), text);
    goes_on = !stopped_;
  } else {
    Stop(Fault::kProtocol, fmt::format("the script sent a message of the unknown kind {}", kind));
  }
  // A guest that was blocked by its receiver may have used up its time there.
  return goes_on && MayGoOn() ? std::optional<std::string>(std::string()) : std::nullopt;
}

bool ScriptRun::Deliver(const ScriptMessage& message) {
  return sink_->Take(message) || Stop(Fault::kKilled, "the receiver of its messages ended the run");
}

bool ScriptRun::TakeMessage(MessageKind kind, bool final, std::string_view text) {
  if (settled_ || reported_) {
    outcome_.late_done += kind == MessageKind::kDone ? 1 : 0;
    outcome_.late_debug += kind == MessageKind::kDebug ? 1 : 0;
    return true;
  }
  const std::uint64_t limit = OrEndless(job_->limits.output_bytes);
  if (text.size() > limit - std::min(limit, outcome_.usage.output_bytes)) {
    return Stop(Fault::kOutput, fmt::format("the script's results are larger than its limit of {} "
                                            "bytes",
                                            limit));
  }
  if (messages_ >= OrEndless(job_->limits.messages)) {
    return Stop(Fault::kMessages, fmt::format("the script sent more messages than its limit of {}",
                                              job_->limits.messages));
  }
  ++messages_;
  outcome_.usage.output_bytes += text.size();
  const bool done = kind == MessageKind::kDone;
  if (!Deliver({.kind = kind, .final = done ? final : false, .text = text})) return false;
  if (done && final) {
    settled_ = true;
    deadline_ = std::min(deadline_, Clock::now() + kGrace);
  }
  return true;
}

bool ScriptRun::TakeReport(std::string_view text) {
  if (reported_) return true;
  if (settled_) {
    reported_ = true;
    return true;
  }
  if (!ReadScriptReport(text, outcome_)) {
    return Stop(Fault::kProtocol, "the end of the script was reported in no known form");
  }
  reported_ = true;
  return true;
}

void ScriptRun::TakeOutput(MessageKind kind, std::string_view text) {
  if (stopped_) return;
  const bool is_error = kind == MessageKind::kStderr;
  std::uint64_t& taken = stream_bytes_[is_error ? 1 : 0];
  const std::uint64_t room = OrEndless(job_->limits.stream_bytes) - taken;
  const std::string_view kept = text.substr(0, std::min<std::uint64_t>(room, text.size()));
  taken += kept.size();
  (is_error ? outcome_.stderr_dropped : outcome_.stdout_dropped) += text.size() - kept.size();
  if (!kept.empty()) Deliver({.kind = kind, .final = false, .text = kept});
}

void ScriptRun::ExplainMemory() {
  outcome_.fault = Fault::kMemory;
  outcome_.message = fmt::format("the script used more memory than its limit of {} bytes",
                                 job_->limits.memory_bytes);
}

// A report is the script's word, which may be forged; what its memory was refused is not.
void ScriptRun::JudgeMemory(bool was_refused) {
  if (outcome_.fault != Fault::kMemory && outcome_.error_type != "MemoryError") return;
  if (was_refused) return ExplainMemory();
  if (outcome_.fault != Fault::kMemory) return;
  outcome_.fault = Fault::kRaised;
  outcome_.error_type = "MemoryError";
}

void ScriptRun::Explain(const GuestCall& call, const Guest& guest) {
  if (stopped_ || settled_) return;
  const bool no_memory = guest.growth_refused();
  switch (call.end) {
    case GuestCall::End::kReturned:
      if (reported_) {
        JudgeMemory(no_memory);
        return;
      }
      // The harness itself had no memory left to say so.
      if (no_memory) return ExplainMemory();
      Stop(Fault::kProtocol, "the script ended its interpreter's harness before it could report");
      return;
    case GuestCall::End::kExit:
      outcome_.fault = Fault::kExited;
      outcome_.error_type = "SystemExit";
      outcome_.exit_code = static_cast<int>(exit_code().value_or(0) & 0xffu);
      outcome_.message =
          fmt::format("the script ended the interpreter with exit code {}", outcome_.exit_code);
      return;
    case GuestCall::End::kStack:
      // The interpreter looks after its own stack, but some functions recurse without a look at it
      // and meet the engine's end of the stack.
      outcome_.fault = Fault::kRaised;
      outcome_.error_type = "RecursionError";
      outcome_.message = "maximum recursion depth exceeded";
      return;
    default:
      if (no_memory) return ExplainMemory();
      outcome_.fault = Fault::kArtifact;
      outcome_.message = fmt::format("the interpreter itself failed: {}", CauseOf(call.detail));
  }
}

ScriptOutcome ScriptRun::Finish(const GuestCall& call, const Guest& guest) {
  Explain(call, guest);
  outcome_.usage.wall = Clock::now() - start_;
  outcome_.usage.memory_bytes = guest.memory().size();
  outcome_.cpu = CpuUsed();
  return std::move(outcome_);
}

}  // namespace caisson::isolate::cpython
