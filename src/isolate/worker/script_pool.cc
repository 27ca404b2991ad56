// SPDX-License-Identifier: Apache-2.0
#include "isolate/worker/script_pool.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "errors/isolate.h"
#include "errors/json.h"
#include "isolate/worker/script_call.h"
#include "os/cgroup.h"

namespace caisson::isolate {
namespace {

Result<void> CheckSize(const ScriptJob& job) {
  constexpr std::uint64_t kRoomForTheRest = 1u << 20;
  const std::uint64_t size =
      std::uint64_t{job.source.size()} + job.inputs.size() + job.options.size();
  if (size <= kMaxFrameBytes - kRoomForTheRest) return {};
  return Fail(errors::kJsonTooLarge, "A script and its documents have " + std::to_string(size) +
                                         " bytes, more than a worker takes (1 GiB); pass fewer "
                                         "documents.");
}

// Whether an idle worker still waits for a job: one that says something unasked is none of ours.
bool IsQuiet(const WorkerProcess& worker) {
  pollfd event{worker.channel.get(), POLLIN, 0};
  return ::poll(&event, 1, 0) == 0;
}

}  // namespace

ScriptWorkerRuntime::Pool::Pool(WorkerOptions options, os::CgroupReaper reaper,
                                os::UniqueFd stop_event)
    : reaper_(std::move(reaper)),
      stop_event_(std::move(stop_event)),
      options_(std::move(options)),
      keeper_([this](const std::stop_token& stop) { Keep(stop); }) {}

Result<std::unique_ptr<ScriptWorkerRuntime::Pool>> ScriptWorkerRuntime::Pool::Create(
    WorkerOptions options) {
  if (options.workers == 0) {
    options.workers = std::max(1u, std::thread::hardware_concurrency());
  }
  (void)os::Cgroup::Sweep();  // of runs that were killed together with their reaper
  CAISSON_ASSIGN(os::CgroupReaper reaper, os::CgroupReaper::Start());
  CAISSON_ASSIGN(os::UniqueFd stop_event, os::MakeEventFd());
  return std::unique_ptr<Pool>(
      new Pool(std::move(options), std::move(reaper), std::move(stop_event)));
}

ScriptWorkerRuntime::Pool::~Pool() {
  keeper_.request_stop();
  const std::uint64_t one = 1;
  (void)!::write(stop_event_.get(), &one, sizeof one);
  changed_.notify_all();
  keeper_.join();
}

void ScriptWorkerRuntime::Pool::Keep(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return wanted_ > 0; })) {
    if (stop.stop_requested()) return;
    --wanted_;
    StartOne(lock);
  }
  // The processes end here, with the thread that started them.
  auto idle = std::exchange(idle_, {});
  lock.unlock();
}

void ScriptWorkerRuntime::Pool::StartOne(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  auto started = StartWorker(options_, stop_event_);
  if (started && options_.learn && !std::exchange(learned_, true)) {
    for (std::string& word : options_.learn(started->describe)) {
      options_.arguments.push_back(std::move(word));
    }
  }
  lock.lock();
  --starting_;
  if (!started) {
    --alive_;
    ++failures_;
    start_error_ = std::move(started).error();
  } else {
    ++stats_.started;
    about_ = About{started->describe, started->walls};
    process_ids_.insert(started->jailed.process.pid());
    idle_.push_back(std::make_unique<WorkerProcess>(*std::move(started)));
  }
  changed_.notify_all();
}

std::unique_ptr<WorkerProcess> ScriptWorkerRuntime::Pool::TakeIdle() {
  if (idle_.empty()) return nullptr;
  auto worker = std::move(idle_.back());
  idle_.pop_back();
  return worker;
}

Result<std::unique_ptr<WorkerProcess>> ScriptWorkerRuntime::Pool::Acquire(
    const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  ++waiting_;
  const std::uint64_t failures = failures_;
  for (;;) {
    while (auto worker = TakeIdle()) {
      if (IsQuiet(*worker)) {
        --waiting_;
        return worker;
      }
      lock.unlock();
      Bury(std::move(worker));
      lock.lock();
    }
    if (failures_ != failures) {
      --waiting_;
      return Fail(*start_error_);
    }
    if (NeedsAnother()) {
      ++alive_;
      ++wanted_;
      ++starting_;
      changed_.notify_all();
    }
    const bool goes_on = changed_.wait(
        lock, stop, [&] { return !idle_.empty() || failures_ != failures || NeedsAnother(); });
    if (!goes_on) {
      --waiting_;
      return std::unique_ptr<WorkerProcess>();
    }
  }
}

void ScriptWorkerRuntime::Pool::Release(std::unique_ptr<WorkerProcess> worker) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(worker));
  changed_.notify_all();
}

void ScriptWorkerRuntime::Pool::Bury(std::unique_ptr<WorkerProcess> worker) {
  const int pid = worker->jailed.process.pid();
  worker.reset();
  const std::lock_guard lock(mutex_);
  process_ids_.erase(pid);
  --alive_;
  ++stats_.killed;
  changed_.notify_all();
}

Result<ScriptOutcome> ScriptWorkerRuntime::Pool::Run(const ScriptJob& job, ScriptSink& sink,
                                                     const std::stop_token& stop) {
  CAISSON_TRY(CheckSize(job));
  CAISSON_ASSIGN(std::unique_ptr<WorkerProcess> worker, Acquire(stop));
  if (!worker) {
    ScriptOutcome outcome;
    outcome.fault = Fault::kKilled;
    outcome.message = "the run was cancelled before it began";
    return outcome;
  }
  ScriptCallResult result = CallScript(*worker, options_, job, sink, stop);
  if (result.worker_is_good) {
    Release(std::move(worker));
  } else {
    Bury(std::move(worker));
  }
  return std::move(result.outcome);
}

Result<ScriptWorkerRuntime::Pool::About> ScriptWorkerRuntime::Pool::Describe() {
  {
    const std::lock_guard lock(mutex_);
    if (about_) return *about_;
  }
  CAISSON_ASSIGN(std::unique_ptr<WorkerProcess> worker, Acquire({}));
  About about{worker->describe, worker->walls};
  Release(std::move(worker));
  return about;
}

WorkerStats ScriptWorkerRuntime::Pool::Stats() {
  const std::lock_guard lock(mutex_);
  WorkerStats stats = stats_;
  stats.process_ids.assign(process_ids_.begin(), process_ids_.end());
  stats.running = stats.process_ids.size();
  for (const auto& worker : idle_) stats.resident_bytes += ResidentBytes(*worker);
  return stats;
}

ScriptWorkerRuntime::ScriptWorkerRuntime(std::unique_ptr<Pool> pool) : pool_(std::move(pool)) {}
ScriptWorkerRuntime::~ScriptWorkerRuntime() = default;

Result<std::unique_ptr<ScriptWorkerRuntime>> ScriptWorkerRuntime::Create(WorkerOptions options) {
  CAISSON_ASSIGN(std::unique_ptr<Pool> pool, Pool::Create(std::move(options)));
  return std::unique_ptr<ScriptWorkerRuntime>(new ScriptWorkerRuntime(std::move(pool)));
}

Result<ScriptOutcome> ScriptWorkerRuntime::Run(const ScriptJob& job, ScriptSink& sink,
                                               std::stop_token stop) {
  return pool_->Run(job, sink, stop);
}

json::Value ScriptWorkerRuntime::Describe() const {
  const auto about = pool_->Describe();
  json::Object out;
  if (!about) {
    out.Set("error", about.error().message);
    return out;
  }
  if (about->describe.is_object()) out = about->describe.as_object();
  json::Array walls;
  for (const jail::WallReport& wall : about->walls) {
    json::Object entry;
    entry.Set("name", wall.name);
    entry.Set("stands", wall.stands);
    if (!wall.stands) entry.Set("reason", wall.reason);
    walls.push_back(std::move(entry));
  }
  out.Set("walls", std::move(walls));
  return out;
}

Result<std::vector<jail::WallReport>> ScriptWorkerRuntime::Walls() const {
  CAISSON_ASSIGN(auto about, pool_->Describe());
  return std::move(about.walls);
}

Result<void> ScriptWorkerRuntime::Warm() const {
  CAISSON_TRY(pool_->Describe());
  return {};
}

WorkerStats ScriptWorkerRuntime::Stats() const { return pool_->Stats(); }

}  // namespace caisson::isolate
