// SPDX-License-Identifier: Apache-2.0
// The calls of one run in workers that other runs use, too. A stop gives up the calls that this run
// waits for and leaves the workers alone: one of them is busy until its call ends within its
// limits.
#pragma once

#include <memory>
#include <stop_token>

#include "base/status.h"
#include "isolate/executor.h"
#include "isolate/runtime.h"
#include "isolate/worker/worker.h"

namespace caisson::capi {

// Fails as WorkerRuntime::CallEncoded does, and with isolate.worker_lost once `stop` is requested.
Result<isolate::EncodedOutcome> CallUntil(isolate::WorkerRuntime& workers, isolate::EncodedJob job,
                                          const std::stop_token& stop);

class StoppableCalls final : public isolate::Runtime {
 public:
  // `workers` outlives this.
  StoppableCalls(isolate::WorkerRuntime& workers, std::stop_token stop)
      : workers_(workers), stop_(std::move(stop)) {}
  Result<isolate::Outcome> Call(const isolate::Job& job) override;
  json::Value Describe() const override { return workers_.Describe(); }

 private:
  isolate::WorkerRuntime& workers_;
  std::stop_token stop_;
};

}  // namespace caisson::capi
