// SPDX-License-Identifier: Apache-2.0
#include "isolate/worker/pool.h"

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "errors/isolate.h"
#include "errors/jail.h"
#include "errors/json.h"
#include "os/cgroup.h"

namespace caisson::isolate {
namespace {

using namespace std::chrono_literals;

// Calls wait in a worker behind another only when that one is over so soon that nobody minds.
constexpr auto kShortCall = 1ms;
constexpr auto kShortHead = 2ms;
constexpr auto kLongCall = 20ms;  // counts as no longer than this, so as to be forgotten soon
// After a failed start, calls make do with the workers that there are for so long.
constexpr auto kStartPause = 5s;
constexpr int kStartAttempts = 3;
constexpr auto kFirstBackoff = 50ms;

void Signal(const os::UniqueFd& event) {
  const std::uint64_t one = 1;
  (void)!::write(event.get(), &one, sizeof one);
}
void Drain(const os::UniqueFd& event) {
  std::uint64_t count = 0;
  // NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection): it does not block
  (void)!::read(event.get(), &count, sizeof count);
}

std::size_t CoresOfThisProcess() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::size_t>(std::max(CPU_COUNT(&set), 1));
}

Outcome Killed(std::string message) {
  Outcome outcome;
  outcome.fault = Fault::kKilled;
  outcome.message = std::move(message);
  return outcome;
}

Outcome TooLong(const Limits& limits) {
  Outcome outcome;
  outcome.fault = Fault::kWallClock;
  outcome.message = "The code ran longer than its limit of " +
                    std::to_string(limits.wall_clock.count()) +
                    " ms and did not let itself be stopped; its worker was killed.";
  return outcome;
}

std::unexpected<Status> Stopped() {
  return Fail(errors::kIsolateWorkerLost, "The runtime was shut down before the call ended.");
}

}  // namespace

Result<std::unique_ptr<WorkerRuntime::Pool>> WorkerRuntime::Pool::Create(WorkerOptions options) {
  const std::size_t cores = CoresOfThisProcess();
  options.workers = options.workers == 0 ? cores : std::min(options.workers, cores);
  options.calls_in_flight = std::max<std::size_t>(options.calls_in_flight, 1);
  std::unique_ptr<Pool> pool(new Pool(std::move(options)));
  (void)os::Cgroup::Sweep();  // of runs that were killed together with their reaper
  CAISSON_ASSIGN(pool->reaper_, os::CgroupReaper::Start());
  CAISSON_ASSIGN(pool->stop_event_, os::MakeEventFd());
  for (std::size_t i = 0; i < pool->options_.workers; ++i) {
    auto slot = std::make_unique<Slot>();
    CAISSON_ASSIGN(slot->leader_wake, os::MakeEventFd());
    CAISSON_ASSIGN(slot->thread_wake, os::MakeEventFd());
    pool->slots_.push_back(std::move(slot));
  }
  return pool;
}

WorkerRuntime::Pool::~Pool() { Shutdown(); }

void WorkerRuntime::Pool::Shutdown() {
  Lock lock(mutex_);
  if (stopping_) return;
  stopping_ = true;
  Signal(stop_event_);
  started_.notify_all();
  for (auto& slot : slots_) {
    Signal(slot->leader_wake);
    Signal(slot->thread_wake);
  }
  lock.unlock();
  for (auto& slot : slots_) {
    if (slot->thread.joinable()) slot->thread.join();
  }
  reaper_ = os::CgroupReaper();
  lock.lock();
  Finished finished;
  for (auto& slot : slots_) {
    for (const PendingPtr& call : slot->in_flight) Finish(call, Stopped(), finished);
    slot->in_flight.clear();
  }
  for (const PendingPtr& call : queue_) Finish(call, Stopped(), finished);
  queue_.clear();
  RunCallbacks(lock, finished);
}

// ---- entry ----

Result<EncodedOutcome> WorkerRuntime::Pool::Call(EncodedJob job) {
  auto call = std::make_shared<PendingCall>();
  call->job = std::move(job);
  Lock lock(mutex_);
  if (stopping_) return Stopped();
  queue_.push_back(call);
  Dispatch();
  while (!call->done) {
    Slot* slot = call->slot;
    if (slot != nullptr && slot->state == Slot::State::kUp && !slot->led && !stopping_) {
      Lead(lock, *slot, call.get());
    } else {
      call->wake.wait(lock);
    }
  }
  return *std::move(call->result);
}

void WorkerRuntime::Pool::Submit(EncodedJob job, Callback callback) {
  auto call = std::make_shared<PendingCall>();
  call->job = std::move(job);
  call->callback = std::move(callback);
  Lock lock(mutex_);
  if (stopping_) {
    lock.unlock();
    call->callback(Stopped());
    return;
  }
  queue_.push_back(call);
  Dispatch();
}

Result<WorkerRuntime::Pool::About> WorkerRuntime::Pool::Describe() {
  Lock lock(mutex_);
  const std::uint64_t attempts = start_attempts_;
  if (!about_) StartOne();
  started_.wait(lock, [&] { return about_ || start_attempts_ != attempts || stopping_; });
  if (about_) return *about_;
  if (start_attempts_ == attempts) return Stopped();
  return Fail(*start_error_);
}

WorkerStats WorkerRuntime::Pool::Stats() {
  const Lock lock(mutex_);
  WorkerStats stats = stats_;
  for (const auto& slot : slots_) {
    if (slot->state != Slot::State::kUp) continue;
    ++stats.running;
    stats.resident_bytes += ResidentBytes(*slot->worker);
    stats.process_ids.push_back(slot->worker->jailed.process.pid());
  }
  return stats;
}

// ---- which worker gets which call ----

Slot* WorkerRuntime::Pool::IdleSlot() {
  for (auto& slot : slots_) {
    if (slot->state == Slot::State::kUp && slot->in_flight.empty() && !slot->dead_seen) {
      return slot.get();
    }
  }
  return nullptr;
}

Slot* WorkerRuntime::Pool::ShortestQueue() {
  if (usual_duration_ > kShortCall) return nullptr;
  Slot* best = nullptr;
  const auto now = Clock::now();
  for (auto& slot : slots_) {
    if (slot->state != Slot::State::kUp || slot->dead_seen) continue;
    const std::size_t size = slot->in_flight.size();
    if (size >= options_.calls_in_flight) continue;
    if (size != 0 && now - slot->in_flight.front()->head_since > kShortHead) continue;
    if (best == nullptr || size < best->in_flight.size()) best = slot.get();
  }
  return best;
}

void WorkerRuntime::Pool::StartOne() {
  if (stopping_) return;
  for (auto& slot : slots_) {
    if (slot->state == Slot::State::kStarting) return;  // one at a time
    if (slot->state == Slot::State::kUp && Clock::now() < next_start_) return;
  }
  for (auto& slot : slots_) {
    if (slot->state != Slot::State::kDown) continue;
    slot->state = Slot::State::kStarting;
    if (!slot->thread.joinable()) {
      slot->thread = std::thread([this, owned = slot.get()] { Run(*owned); });
    }
    Signal(slot->thread_wake);
    return;
  }
}

void WorkerRuntime::Pool::Dispatch() {
  while (!queue_.empty()) {
    Slot* slot = IdleSlot();
    if (slot == nullptr) {
      StartOne();
      slot = ShortestQueue();
    }
    if (slot == nullptr) return;
    slot->Queue(queue_.front());
    queue_.pop_front();
    SendTo(*slot);
  }
}

void WorkerRuntime::Pool::SendTo(Slot& slot) {
  // A broken channel shows when the leader reads from it.
  (void)slot.Flush();
  if (slot.has_output() && slot.led) Signal(slot.leader_wake);
  if (!slot.led) HandOver(slot);
}

// ---- leading ----

bool WorkerRuntime::Pool::HasSubmitted(const Slot& slot) const {
  return std::ranges::any_of(slot.in_flight, [](const auto& call) { return !call->has_waiter(); });
}

void WorkerRuntime::Pool::HandOver(Slot& slot) {
  if (slot.state != Slot::State::kUp || slot.dead_seen || stopping_) {
    Signal(slot.thread_wake);
    return;
  }
  for (const PendingPtr& call : slot.in_flight) {
    if (!call->has_waiter()) continue;
    call->wake.notify_one();
    return;
  }
  if (!slot.in_flight.empty()) Signal(slot.thread_wake);
}

// Leads until `until` is done or, without it, as long as there is something to do for Submit.
void WorkerRuntime::Pool::Lead(Lock& lock, Slot& slot, const PendingCall* until) {
  slot.led = true;
  while (slot.state == Slot::State::kUp && !stopping_) {
    if (until != nullptr ? until->done : !HasSubmitted(slot) && !slot.dead_seen) break;
    Step(lock, slot);
  }
  slot.led = false;
  HandOver(slot);
}

void WorkerRuntime::Pool::Step(Lock& lock, Slot& slot) {
  std::array<pollfd, 2> events = {
      pollfd{slot.worker->channel.get(),
             static_cast<short>(POLLIN | (slot.has_output() ? POLLOUT : 0)), 0},
      pollfd{slot.leader_wake.get(), POLLIN, 0}};
  int timeout = -1;
  if (!slot.in_flight.empty() && slot.in_flight.front()->job.limits.wall_clock > 0ms) {
    const PendingCall& head = *slot.in_flight.front();
    const auto deadline = head.head_since + head.job.limits.wall_clock + options_.grace;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left <= 0ms) {
      slot.head_fate = TooLong(head.job.limits);
      Condemn(slot);
      return;
    }
    timeout = static_cast<int>(std::min<std::int64_t>(left.count(), 3'600'000));
  }
  lock.unlock();
  const int ready = ::poll(events.data(), events.size(), timeout);
  Slot::Received received = Slot::Received::kNothing;
  if (ready > 0 && (events[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
    received = slot.Receive();
  }
  if (ready > 0 && events[1].revents != 0) Drain(slot.leader_wake);
  lock.lock();

  Finished finished;
  if (received == Slot::Received::kSome) TakeReplies(slot, finished);
  if (received == Slot::Received::kClosed || !slot.violation.empty()) Condemn(slot);
  if (slot.state == Slot::State::kUp) (void)slot.Flush();
  RunCallbacks(lock, finished);
}

void WorkerRuntime::Pool::TakeReplies(Slot& slot, Finished& finished) {
  while (auto reply = slot.NextReply()) {
    const PendingPtr call = slot.in_flight.front();
    slot.in_flight.pop_front();
    const auto now = Clock::now();
    const std::chrono::nanoseconds took = now - call->head_since;
    usual_duration_ =
        (usual_duration_ * 7 + std::min<std::chrono::nanoseconds>(took, kLongCall)) / 8;
    if (!slot.in_flight.empty()) slot.in_flight.front()->head_since = now;
    Finish(call, std::move(reply->result), finished);
    Dispatch();
  }
}

void WorkerRuntime::Pool::Condemn(Slot& slot) {
  if (slot.state == Slot::State::kUp) slot.state = Slot::State::kDying;
}

void WorkerRuntime::Pool::Finish(const PendingPtr& call, Result<EncodedOutcome> result,
                                 Finished& finished) {
  call->result = std::move(result);
  call->slot = nullptr;
  call->done = true;
  if (call->has_waiter()) {
    call->wake.notify_one();
  } else {
    finished.push_back(call);
  }
}

void WorkerRuntime::Pool::RunCallbacks(Lock& lock, Finished& finished) {
  if (finished.empty()) return;
  lock.unlock();
  for (const PendingPtr& call : finished) {
    call->callback(*std::move(call->result));
    call->callback = nullptr;
  }
  finished.clear();
  lock.lock();
}

// ---- the slot's thread ----

void WorkerRuntime::Pool::Run(Slot& slot) {
  ::prctl(PR_SET_NAME, "caisson-worker");
  Lock lock(mutex_);
  while (!stopping_) {
    switch (slot.state) {
      case Slot::State::kStarting:
        Start(lock, slot);
        break;
      case Slot::State::kDying:
        Bury(lock, slot);
        break;
      case Slot::State::kDown:
      case Slot::State::kUp:
        Watch(lock, slot);
        break;
    }
  }
  // Its leader may be reading from the worker without the lock; it has been woken, too.
  while (slot.led) AwaitWake(lock, slot);
  // Calls that are still there get their answer from Shutdown.
  auto worker = std::exchange(slot.worker, std::nullopt);
  slot.state = Slot::State::kDown;
  lock.unlock();
  worker.reset();
}

void WorkerRuntime::Pool::AwaitWake(Lock& lock, Slot& slot) {
  lock.unlock();
  pollfd event{slot.thread_wake.get(), POLLIN, 0};
  ::poll(&event, 1, -1);
  Drain(slot.thread_wake);
  lock.lock();
}

void WorkerRuntime::Pool::Watch(Lock& lock, Slot& slot) {
  const bool up = slot.state == Slot::State::kUp;
  if (up && !slot.led && (HasSubmitted(slot) || slot.dead_seen)) {
    Lead(lock, slot, nullptr);
    return;
  }
  std::array<pollfd, 2> events = {
      pollfd{slot.thread_wake.get(), POLLIN, 0},
      pollfd{up && !slot.dead_seen ? slot.worker->jailed.process.pidfd() : -1, POLLIN, 0}};
  lock.unlock();
  ::poll(events.data(), events.size(), -1);
  Drain(slot.thread_wake);
  lock.lock();
  // Whoever leads will find the channel closed; if nobody does, this thread leads next.
  if (events[1].revents != 0 && slot.state == Slot::State::kUp) slot.dead_seen = true;
}

bool WorkerRuntime::Pool::AnyOther(const Slot& slot, Slot::State state) const {
  return std::ranges::any_of(
      slots_, [&](const auto& other) { return other.get() != &slot && other->state == state; });
}

void WorkerRuntime::Pool::Start(Lock& lock, Slot& slot) {
  lock.unlock();
  auto backoff = kFirstBackoff;
  auto worker = StartWorker(options_, stop_event_);
  for (int attempt = 1; attempt < kStartAttempts; ++attempt) {
    // Anything else will be the same again.
    if (worker || worker.error().code != errors::kIsolateWorkerLost) break;
    pollfd event{slot.thread_wake.get(), POLLIN, 0};
    ::poll(&event, 1, static_cast<int>(backoff.count()));
    lock.lock();
    const bool stopping = stopping_;
    lock.unlock();
    if (stopping) break;
    backoff *= 4;
    worker = StartWorker(options_, stop_event_);
  }
  lock.lock();
  ++start_attempts_;
  if (!worker) {
    start_error_ = worker.error();
    next_start_ = Clock::now() + kStartPause;
    slot.state = Slot::State::kDown;
    if (!AnyOther(slot, Slot::State::kUp)) FailQueue(lock, *start_error_);
    started_.notify_all();
    return;
  }
  ++stats_.started;
  about_ = About{worker->describe, worker->walls};
  slot.worker = *std::move(worker);
  slot.state = Slot::State::kUp;
  started_.notify_all();
  Dispatch();
}

void WorkerRuntime::Pool::FailQueue(Lock& lock, const Status& status) {
  Finished finished;
  for (const PendingPtr& call : queue_) Finish(call, Fail(status), finished);
  queue_.clear();
  RunCallbacks(lock, finished);
}

void WorkerRuntime::Pool::Bury(Lock& lock, Slot& slot) {
  if (slot.led) {  // its leader is on the way out, and will wake us
    AwaitWake(lock, slot);
    return;
  }
  WorkerProcess& worker = *slot.worker;
  lock.unlock();
  // A worker that closed its channel by ending has an exit status of its own; wait for that.
  auto status =
      slot.violation.empty() && !slot.head_fate ? worker.jailed.process.Wait(100ms) : std::nullopt;
  if (!status) {
    worker.jailed.process.Kill();
    status = worker.jailed.process.Wait(10s);
  }
  const bool out_of_memory = worker.jailed.cgroup.OomKills() > 0;
  std::string reason = "The isolate worker ";
  if (!slot.violation.empty()) {
    reason += "broke the protocol (" + slot.violation + ") and was ended.";
  } else {
    reason += (status ? os::ToText(*status) : "did not end") + " during the call";
    reason += out_of_memory ? ": it needed more memory than its cgroup allows." : ".";
  }
  auto dead = std::exchange(slot.worker, std::nullopt);
  dead.reset();
  lock.lock();

  ++stats_.killed;
  Finished finished;
  std::deque<PendingPtr> calls = std::exchange(slot.in_flight, {});
  const bool had_it = !calls.empty() && (calls.front()->sent || calls.front()->sent_again ||
                                         slot.head_fate.has_value());
  if (had_it) {
    EncodedOutcome lost;
    lost.outcome = slot.head_fate ? *std::move(slot.head_fate) : Killed(std::move(reason));
    Finish(calls.front(), std::move(lost), finished);
    calls.pop_front();
  } else if (!calls.empty()) {
    calls.front()->sent_again = true;
  }
  for (const PendingPtr& call : calls) call->slot = nullptr;
  queue_.insert(queue_.begin(), calls.begin(), calls.end());
  slot.Reset();
  slot.state = Slot::State::kDown;
  Dispatch();
  RunCallbacks(lock, finished);
}

}  // namespace caisson::isolate
