// SPDX-License-Identifier: Apache-2.0
// The supervisor of streaming runs: who has which worker. A run has a worker to itself, on the
// thread that called Run; one further thread, the keeper, starts workers (they die with the thread
// that started them).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>
#include <vector>

#include "isolate/worker/frame.h"
#include "isolate/worker/process.h"
#include "isolate/worker/script_worker.h"
#include "os/cgroup_reaper.h"
#include "os/fd.h"

namespace caisson::isolate {

class ScriptWorkerRuntime::Pool {
 public:
  static Result<std::unique_ptr<Pool>> Create(WorkerOptions options);
  ~Pool();

  Result<ScriptOutcome> Run(const ScriptJob& job, ScriptSink& sink, const std::stop_token& stop);

  struct About {
    json::Value describe;
    std::vector<jail::WallReport> walls;
  };
  Result<About> Describe();
  WorkerStats Stats();

 private:
  Pool(WorkerOptions options, os::CgroupReaper reaper, os::UniqueFd stop_event);

  // Empty: `stop` was asked for while waiting.
  Result<std::unique_ptr<WorkerProcess>> Acquire(const std::stop_token& stop);
  std::unique_ptr<WorkerProcess> TakeIdle();
  bool NeedsAnother() const { return alive_ < options_.workers && starting_ < waiting_; }
  void Release(std::unique_ptr<WorkerProcess> worker);
  void Bury(std::unique_ptr<WorkerProcess> worker);
  void Keep(const std::stop_token& stop);
  void StartOne(std::unique_lock<std::mutex>& lock);

  os::CgroupReaper reaper_;  // declared first: ends after the workers and their groups have gone
  os::UniqueFd stop_event_;  // readable once workers need not start any more
  WorkerOptions options_;    // arguments: the keeper's alone
  bool learned_ = false;     // the keeper's
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::unique_ptr<WorkerProcess>> idle_;
  std::set<int> process_ids_;
  std::size_t alive_ = 0;     // idle, busy or being started
  std::size_t wanted_ = 0;    // starts that the keeper has to do
  std::size_t starting_ = 0;  // those, and the one that it is at
  std::size_t waiting_ = 0;   // runs without a worker
  std::uint64_t failures_ = 0;
  std::optional<Status> start_error_;
  std::optional<About> about_;
  WorkerStats stats_;
  std::jthread keeper_;  // last: ends before what it uses goes
};

}  // namespace caisson::isolate
