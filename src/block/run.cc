// SPDX-License-Identifier: Apache-2.0
#include "block/run.h"

#include <exception>

#include "errors/internal.h"

namespace caisson::block {

BlockOutcome RunBlock(isolate::ScriptRuntime& runtime, const isolate::ScriptJob& job,
                      const SettleOptions& options, Receiver& receiver,
                      const std::stop_token& stop) {
  using Ended = Result<isolate::ScriptOutcome>;
  Settler settler(job.limits, options, receiver);
  const auto begin = std::chrono::steady_clock::now();
  const Ended ended = [&]() -> Ended {
    if (stop.stop_requested()) return isolate::ScriptOutcome{.fault = isolate::Fault::kKilled};
    try {
      return runtime.Run(job, settler, stop);
    } catch (const std::exception& error) {  // no memory, most likely
      return Fail(errors::kInternalFailed, error.what());
    }
  }();
  BlockOutcome outcome = settler.Settle(ended, stop.stop_requested());
  if (outcome.usage.wall.count() == 0) {
    outcome.usage.wall = std::chrono::steady_clock::now() - begin;
  }
  return outcome;
}

}  // namespace caisson::block
