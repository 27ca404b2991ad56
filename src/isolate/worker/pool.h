// SPDX-License-Identifier: Apache-2.0
// The supervisor: hands calls to workers and results back. A call goes to an idle worker; when none
// is idle a further one is started, and only calls that are known to be short queue up in a worker.
//
// One lock guards everything. For each worker that has calls, one thread *leads* it: it alone waits
// for the worker, reads replies and passes them on. A thread in Call leads while it waits; when its
// own result has come it hands over to another waiter or to the slot's thread, which leads for the
// callers of Submit. The slot's thread also starts, watches and buries the worker.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "isolate/worker/slot.h"
#include "isolate/worker/worker.h"
#include "os/cgroup_reaper.h"

namespace caisson::isolate {

class WorkerRuntime::Pool {
 public:
  static Result<std::unique_ptr<Pool>> Create(WorkerOptions options);
  ~Pool();
  void Shutdown();

  Result<EncodedOutcome> Call(EncodedJob job);
  void Submit(EncodedJob job, Callback callback);

  struct About {
    json::Value describe;
    std::vector<jail::WallReport> walls;
  };
  Result<About> Describe();
  WorkerStats Stats();

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Clock = PendingCall::Clock;
  using Finished = std::vector<PendingPtr>;

  explicit Pool(WorkerOptions options) : options_(std::move(options)) {}

  // Which worker gets which call.
  void Dispatch();
  Slot* IdleSlot();
  Slot* ShortestQueue();
  void StartOne();
  void SendTo(Slot& slot);

  // Leading.
  void Lead(Lock& lock, Slot& slot, const PendingCall* until);
  void Step(Lock& lock, Slot& slot);
  void TakeReplies(Slot& slot, Finished& finished);
  void HandOver(Slot& slot);
  bool HasSubmitted(const Slot& slot) const;
  void Condemn(Slot& slot);

  // The slot's thread.
  void Run(Slot& slot);
  void Start(Lock& lock, Slot& slot);
  void AwaitWake(Lock& lock, Slot& slot);
  void Watch(Lock& lock, Slot& slot);
  void Bury(Lock& lock, Slot& slot);
  void FailQueue(Lock& lock, const Status& status);
  bool AnyOther(const Slot& slot, Slot::State state) const;

  void Finish(const PendingPtr& call, Result<EncodedOutcome> result, Finished& finished);
  static void RunCallbacks(Lock& lock, Finished& finished);

  const WorkerOptions options_;
  os::CgroupReaper reaper_;  // declared first: ends after the workers and their groups have gone
  std::mutex mutex_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::deque<PendingPtr> queue_;  // not with a worker yet
  bool stopping_ = false;
  os::UniqueFd stop_event_;  // readable once stopping_ is set, and from then on
  std::chrono::nanoseconds usual_duration_{
      std::chrono::milliseconds(10)};  // of recent calls, smoothed
  Clock::time_point next_start_;
  std::optional<About> about_;
  std::optional<Status> start_error_;  // of the last start, when it failed
  std::uint64_t start_attempts_ = 0;
  std::condition_variable started_;
  WorkerStats stats_;
};

}  // namespace caisson::isolate
