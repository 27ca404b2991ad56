// SPDX-License-Identifier: Apache-2.0
#include "capi/stoppable_calls.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "errors/isolate.h"

namespace caisson::capi {
namespace {

// Shared with the workers' threads, which may answer when nobody waits any more.
class Answer {
 public:
  void Put(Result<isolate::EncodedOutcome> outcome) {
    const std::lock_guard lock(mutex_);
    outcome_ = std::move(outcome);
    changed_.notify_all();
  }

  Result<isolate::EncodedOutcome> Wait(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (changed_.wait(lock, stop, [this] { return outcome_.has_value(); })) {
      return *std::move(outcome_);
    }
    return Fail(errors::kIsolateWorkerLost, "the call was given up: it has been cancelled");
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Result<isolate::EncodedOutcome>> outcome_;
};

}  // namespace

Result<isolate::EncodedOutcome> CallUntil(isolate::WorkerRuntime& workers, isolate::EncodedJob job,
                                          const std::stop_token& stop) {
  // Without a stop the waiting thread may read its own reply, which is quicker.
  if (!stop.stop_possible()) return workers.CallEncoded(std::move(job));
  const auto answer = std::make_shared<Answer>();
  workers.Submit(std::move(job), [answer](Result<isolate::EncodedOutcome> outcome) {
    answer->Put(std::move(outcome));
  });
  return answer->Wait(stop);
}

Result<isolate::Outcome> StoppableCalls::Call(const isolate::Job& job) {
  CAISSON_ASSIGN(isolate::EncodedJob encoded, isolate::Encode(job));
  CAISSON_ASSIGN(isolate::EncodedOutcome outcome, CallUntil(workers_, std::move(encoded), stop_));
  return isolate::Decode(std::move(outcome));
}

}  // namespace caisson::capi
