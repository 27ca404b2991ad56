// SPDX-License-Identifier: Apache-2.0
// The cpython runtime of blocks: jailed workers of the program caisson-isolate, and the filling of
// their cache before the first of them starts (cli/cpython_setup.h).
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>

#include "base/status.h"
#include "cli/block_arguments.h"
#include "cli/console.h"
#include "isolate/script.h"
#include "isolate/worker/script_worker.h"

namespace caisson::cli {

class BlockCpython final : public isolate::ScriptRuntime {
 public:
  // Starts nothing yet. `memory_bytes`: the most that a run may ask for. Fails with
  // cli.isolate_missing, or wasm.artifact where the artifact was not fetched.
  static Result<std::unique_ptr<BlockCpython>> Open(const BlockRuntimeArguments& arguments,
                                                    std::size_t runs, std::uint64_t memory_bytes,
                                                    Console& console);

  // Returns once a worker is ready, so that the first run need not wait for it; one caller does the
  // work, the others wait. Fails as ScriptWorkerRuntime::Warm does, with isolate.not_prepared when
  // the cache cannot be filled, and with block.cancelled when asked to stop.
  Result<void> Prepare(const std::stop_token& stop);

  // Prepares first, if that has not been done.
  Result<isolate::ScriptOutcome> Run(const isolate::ScriptJob& job, isolate::ScriptSink& sink,
                                     std::stop_token stop) override;
  json::Value Describe() const override { return workers_->Describe(); }

 private:
  BlockCpython(std::unique_ptr<isolate::ScriptWorkerRuntime> workers, Console& console);
  Result<void> StartAWorker(const std::stop_token& stop);

  const std::unique_ptr<isolate::ScriptWorkerRuntime> workers_;
  Console& console_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool ready_ = false;
  bool at_work_ = false;
};

}  // namespace caisson::cli
