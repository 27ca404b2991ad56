// SPDX-License-Identifier: Apache-2.0
#include "isolate/worker/script_call.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "isolate/pace.h"
#include "isolate/worker/frame.h"
#include "isolate/worker/script_frame.h"
#include "os/fd.h"

namespace caisson::isolate {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// What a worker may take to end a run that was cancelled.
constexpr milliseconds kCancelGrace(1'000);

class ScriptCall {
 public:
  ScriptCall(WorkerProcess& worker, const WorkerOptions& options, const ScriptJob& job,
             ScriptSink& sink)
      : worker_(worker), job_(job), sink_(sink) {
    const auto longest = std::chrono::hours(24 * 365);
    deadline_ =
        Clock::now() + std::min<milliseconds>(job.limits.wall_clock, longest) + options.grace;
  }

  ScriptCallResult Run(const std::stop_token& stop) {
    auto wake = os::MakeEventFd();
    if (!wake) return {Fail(std::move(wake).error()), false};
    const std::stop_callback on_stop(stop, [&wake] {
      const std::uint64_t one = 1;
      (void)!::write(wake->get(), &one, sizeof one);
    });
    const OutgoingFrame frame = EncodeScriptJob(job_);
    head_left_ = frame.head;
    rest_ = frame.rest;
    while (!end_) Step(wake->get());
    return {*std::move(end_), good_};
  }

 private:
  void End(Fault fault, std::string message) {
    ScriptOutcome outcome;
    outcome.fault = fault;
    outcome.message = std::move(message);
    outcome.usage.output_bytes = output_bytes_;
    outcome.usage.wall = Clock::now() - start_;
    end_ = std::move(outcome);
  }
  void Violation(const std::string& what) {
    End(Fault::kKilled, "the isolate worker broke the protocol (" + what + ") and was ended");
  }

  void Step(int wake) {
    const bool pause = pace_.ShouldPause() && !cancelled_;
    std::array<pollfd, 2> events = {
        {{pause ? -1 : worker_.channel.get(), POLLIN, 0}, {wake, POLLIN, 0}}};
    if (has_output()) events[0].events |= POLLOUT;
    // Once asked to stop, the event stays; only the deadline counts then.
    const nfds_t count = cancelled_ ? 1 : 2;
    const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now()).count();
    const std::int64_t longest = pause ? Pace::kPause.count() : 60'000;
    const int timeout = static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, longest));
    const int ready = ::poll(events.data(), count, timeout);
    if (ready < 0 && errno != EINTR) return Violation("it cannot be waited for");
    if (ready > 0 && (events[0].revents & POLLOUT) != 0) Send();
    if (pause || (ready > 0 && (events[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0)) Receive();
    if (end_) return;
    if (ready > 0 && count == 2 && events[1].revents != 0) Cancel("the run was cancelled");
    if (Clock::now() >= deadline_) Overdue();
  }

  bool has_output() const { return !head_left_.empty() || !rest_.empty(); }

  void Send() {
    while (has_output()) {
      std::string_view& part = head_left_.empty() ? rest_ : head_left_;
      const ssize_t n =
          ::send(worker_.channel.get(), part.data(), part.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (n < 0) return Lost();
      part.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  void Receive() {
    const FrameReader::Room room = reader_.Prepare();
    const ssize_t n = ::recv(worker_.channel.get(), room.data, room.size, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return Lost();
    reader_.Commit(static_cast<std::size_t>(n));
    const std::uint64_t before = messages_;
    TakeFrames();
    pace_.Heard(messages_ - before, static_cast<std::size_t>(n) == room.size);
  }

  void TakeFrames() {
    FrameReader::Frame frame{};
    while (!end_) {
      switch (reader_.Next(MaxScriptFrameBytes(job_.limits), frame)) {
        case FrameReader::State::kNeedMore:
          return;
        case FrameReader::State::kViolation:
          return Violation("it sent no frame, or one that is too long");
        case FrameReader::State::kFrame:
          Handle(frame);
      }
    }
  }

  void Handle(const FrameReader::Frame& frame) {
    if (frame.type == FrameType::kScriptMessage) {
      const auto message = DecodeScriptMessage(frame.body);
      return message ? HandleMessage(*message) : Violation("a message of no known form");
    }
    // Nothing may follow an end, and no worker ends a job that it has not had.
    const bool last = reader_.empty() && !has_output();
    if (frame.type == FrameType::kScriptEnd) {
      auto outcome = DecodeScriptEnd(frame.body);
      if (!outcome || !last) return Violation("an end of no known form");
      if (cancelled_ && !settled_ && outcome->fault == Fault::kKilled) {
        outcome->message = cancel_reason_;
      }
      good_ = true;
      end_ = *std::move(outcome);
    } else if (frame.type == FrameType::kStatus) {
      auto status = DecodeScriptStatus(frame.body);
      if (!status || !last) return Violation("a status of no known form");
      good_ = true;
      end_ = Fail(*std::move(status));
    } else {
      Violation("a frame that is none of a run");
    }
  }

  // The worker counts as well; one that lets more through is no longer what we started.
  bool Counts(const ScriptMessage& message) {
    const auto within = [](std::uint64_t used, std::uint64_t limit) {
      return limit == 0 || used <= limit;
    };
    const std::uint64_t size = message.text.size();
    switch (message.kind) {
      case MessageKind::kStdout:
        return within(stdout_bytes_ += size, job_.limits.stream_bytes);
      case MessageKind::kStderr:
        return within(stderr_bytes_ += size, job_.limits.stream_bytes);
      default:
        return within(output_bytes_ += size, job_.limits.output_bytes) &&
               within(++messages_, job_.limits.messages);
    }
  }

  void HandleMessage(const ScriptMessage& message) {
    if (!Counts(message)) return Violation("more output than the run's limit");
    if (cancelled_) return;
    const bool is_result =
        message.kind != MessageKind::kStdout && message.kind != MessageKind::kStderr;
    if (settled_ && is_result) return Violation("a result after the final one");
    settled_ |= message.kind == MessageKind::kDone && message.final;
    if (!sink_.Take(message)) Cancel("the receiver of its messages ended the run");
  }

  void Cancel(std::string reason) {
    if (cancelled_) return;
    cancelled_ = true;
    cancel_reason_ = std::move(reason);
    deadline_ = std::min(deadline_, Clock::now() + kCancelGrace);
    if (has_output()) return End(Fault::kKilled, cancel_reason_);
    // A few bytes into a channel that the worker has read empty: it takes them or is dead.
    const std::string frame = EncodeCancelScript();
    if (::send(worker_.channel.get(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL) !=
        static_cast<ssize_t>(frame.size())) {
      End(Fault::kKilled, cancel_reason_);
    }
  }

  void Overdue() {
    if (cancelled_) return End(Fault::kKilled, cancel_reason_);
    End(Fault::kWallClock, "the script ran longer than its limit of " +
                               std::to_string(job_.limits.wall_clock.count()) +
                               " ms, and its worker had to be ended");
  }

  void Lost() {
    const auto status = worker_.jailed.process.Wait(std::chrono::seconds(5));
    std::string reason = "the isolate worker ";
    reason += (status ? os::ToText(*status) : "did not end") + " during the run";
    if (worker_.jailed.cgroup.OomKills() > 0) {
      reason += ": it needed more memory than its cgroup allows";
    }
    End(Fault::kKilled, cancelled_ ? cancel_reason_ : reason);
  }

  WorkerProcess& worker_;
  const ScriptJob& job_;
  ScriptSink& sink_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point deadline_;
  std::string_view head_left_;  // of the job's frame
  std::string_view rest_;
  FrameReader reader_;
  Pace pace_;
  std::optional<Result<ScriptOutcome>> end_;
  bool good_ = false;
  bool settled_ = false;
  bool cancelled_ = false;
  std::string cancel_reason_;
  std::uint64_t output_bytes_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t stdout_bytes_ = 0;
  std::uint64_t stderr_bytes_ = 0;
};

}  // namespace

ScriptCallResult CallScript(WorkerProcess& worker, const WorkerOptions& options,
                            const ScriptJob& job, ScriptSink& sink, const std::stop_token& stop) {
  return ScriptCall(worker, options, job, sink).Run(stop);
}

}  // namespace caisson::isolate
