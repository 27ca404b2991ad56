// SPDX-License-Identifier: Apache-2.0
#include "isolate/native/call.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <optional>
#include <string>
#include <utility>

#include "isolate/supervision.h"
#include "os/process.h"

namespace caisson::isolate::native {
namespace {

using std::chrono::nanoseconds;

// CPU time of a whole process that need not be our child.
std::optional<nanoseconds> CpuOf(pid_t pid) {
  timespec time{};
  clockid_t clock = 0;
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) {
    return std::nullopt;
  }
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

class Call final : public Supervision {
 public:
  Call(StartedCall call, const ScriptJob& job, ScriptSink& sink)
      : Supervision({std::move(call.channel), std::move(call.out), std::move(call.err)}, job, sink),
        spare_(std::move(call.spare)),
        cpu_before_(CpuOf(spare_.pid).value_or(nanoseconds(0))),
        data_before_(os::PeakDataBytes(spare_.pid)) {}

  // Empty when the process was gone before the script could run.
  Result<std::optional<ScriptOutcome>> Run(const std::stop_token& stop);
  bool zygote_lost() const { return zygote_lost_; }
  Spare TakeSpare() { return std::move(spare_); }

 private:
  int EventFd() const override { return spare_.socket.get(); }
  bool HandleEvent() override;
  // Of the script; what its process used before it had one does not count.
  std::optional<nanoseconds> CpuNow() const override {
    const auto now = CpuOf(spare_.pid);
    if (!now) return std::nullopt;
    return *now - cpu_before_;
  }
  std::uint64_t MemoryPeak() const override {
    const std::uint64_t data = os::PeakDataBytes(spare_.pid);
    return std::max(spare_.cgroup.PeakMemoryBytes(), data - std::min(data, data_before_));
  }
  void Explain();
  void Finish();

  Spare spare_;
  nanoseconds cpu_before_;
  std::uint64_t data_before_;
  std::optional<Reply> exit_;  // the zygote's word on the process
  bool zygote_lost_ = false;
  bool entered_ = false;  // else nothing of the script has run
};

bool Call::HandleEvent() {
  const auto reply = ReceiveReply(spare_.socket.get(), 0, nullptr);
  if (reply && reply->kind == ReplyKind::kEntered) return entered_ = true;
  exit_ = reply;
  zygote_lost_ = !reply;
  spare_.socket.Reset();
  return false;
}

void Call::Explain() {
  if (ended()) return;
  if (!exit_ || exit_->kind != ReplyKind::kEnded) {
    return End(Fault::kKilled,
               "the interpreter's zygote died during the run; results delivered before it stand");
  }
  if (spare_.cgroup.OomKills() > 0) return EndByMemory();
  if (WIFEXITED(exit_->status)) return EndByExit(WEXITSTATUS(exit_->status));
  EndBySignal(WTERMSIG(exit_->status));
}

void Call::Finish() {
  outcome().usage.wall = std::chrono::steady_clock::now() - begin();
  outcome().usage.memory_bytes = spare_.cgroup.PeakMemoryBytes();
  outcome().cpu = exit_ ? nanoseconds(exit_->cpu_ns) - cpu_before_ : CpuNow().value_or(cpu_used());
  ::syscall(SYS_pidfd_send_signal, spare_.pidfd.get(), SIGKILL, nullptr, 0);
}

Result<std::optional<ScriptOutcome>> Call::Run(const std::stop_token& stop) {
  Supervise(stop);
  if (!ended() && !entered_ && !(exit_ && exit_->kind == ReplyKind::kFailed)) return std::nullopt;
  Explain();
  // The harness has flushed the streams before it reported.
  Drain();
  if (exit_ && exit_->kind == ReplyKind::kFailed) return WallFailure(*exit_);
  Finish();
  return std::move(outcome());
}

}  // namespace

Result<CallResult> RunCall(Spare spare, const NativeOptions& options, const ScriptJob& job,
                           ScriptSink& sink, const std::stop_token& stop) {
  CAISSON_ASSIGN(std::optional<StartedCall> call, StartScript(std::move(spare), options, job));
  if (!call) return CallResult{};
  Call running(*std::move(call), job, sink);
  CAISSON_ASSIGN(std::optional<ScriptOutcome> outcome, running.Run(stop));
  return CallResult{.outcome = std::move(outcome),
                    .zygote_lost = running.zygote_lost(),
                    .ended = running.TakeSpare()};
}

}  // namespace caisson::isolate::native
