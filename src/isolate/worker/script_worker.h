// SPDX-License-Identifier: Apache-2.0
// Script runs in other processes: ScriptWorkerRuntime keeps jailed worker processes of one tenant,
// each of which hosts a ScriptExecutor and serves one run at a time, its messages passed on while
// it lasts. ScriptWorkerMain is the worker's side. Workers are not trusted once they are sealed:
// whatever comes from one is bounded and counted.
//
// Back-pressure: a sink that blocks leaves messages in the channel, and a full channel blocks the
// guest; its time goes on. A run is cancelled by a frame, and by killing the worker when that does
// not help. A worker that dies takes its run with it and nothing else.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "isolate/script.h"
#include "isolate/script_executor.h"
#include "isolate/worker/worker.h"
#include "os/seccomp.h"

namespace caisson::isolate {

class ScriptWorkerRuntime final : public ScriptRuntime {
 public:
  // WorkerOptions::calls_in_flight has no meaning here. Starts nothing yet.
  static Result<std::unique_ptr<ScriptWorkerRuntime>> Create(WorkerOptions options);
  // Kills all workers. No run may be under way.
  ~ScriptWorkerRuntime() override;

  // Waits for a free worker. Fails with jail.unavailable, with what the worker's factory failed
  // with, isolate.worker_lost (no worker becomes ready), json.too_large. A worker that dies gives
  // Fault::kKilled; what outlives its wall clock by the grace is killed (Fault::kWallClock).
  Result<ScriptOutcome> Run(const ScriptJob& job, ScriptSink& sink, std::stop_token stop) override;

  // What the executor in the worker says, and the walls; starts a worker when there is none.
  json::Value Describe() const override;
  Result<std::vector<jail::WallReport>> Walls() const;
  // Starts a worker now, so that the first run need not wait for it.
  Result<void> Warm() const;
  WorkerStats Stats() const;

 private:
  class Pool;
  explicit ScriptWorkerRuntime(std::unique_ptr<Pool> pool);
  std::unique_ptr<Pool> pool_;
};

// What a factory makes, and the system calls that it needs beside jail::WorkerSyscalls.
struct ScriptWorkerParts {
  std::unique_ptr<ScriptExecutor> executor;
  std::vector<os::SyscallRule> syscalls;
};
using ScriptExecutorFactory = std::function<Result<ScriptWorkerParts>()>;

// As WorkerMain (isolate/worker/worker.h); runs are served on a thread with as much stack as the
// executor wants.
int ScriptWorkerMain(const WorkerCommand& command, const ScriptExecutorFactory& factory);

}  // namespace caisson::isolate
