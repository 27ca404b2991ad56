// SPDX-License-Identifier: Apache-2.0
// The agent's one thread: descriptors that become ready, and times that come. What a callback ends
// is destroyed after it (Dispose), so that nobody pulls the ground from under his own feet.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "os/fd.h"

namespace caisson::agent::guest {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class EventSource;
class Timer;

class Disposable {
 public:
  virtual ~Disposable() = default;
};

// Makes anything else one.
template <typename T>
class Retired final : public Disposable {
 public:
  explicit Retired(std::unique_ptr<T> object) : object_(std::move(object)) {}

 private:
  std::unique_ptr<T> object_;
};

class Loop {
 public:
  Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  [[noreturn]] void Run();
  // Destroys it after the present callback.
  void Dispose(std::unique_ptr<Disposable> object) { disposed_.push_back(std::move(object)); }
  // Likewise; it calls no more from now on. An empty one is fine.
  void Retire(std::unique_ptr<EventSource>& source);

 private:
  friend class EventSource;
  friend class Timer;
  void RunTimers();
  void DropDisposed();
  int UntilNextTimer() const;

  os::UniqueFd epoll_;
  std::uint64_t last_key_ = 0;
  std::unordered_map<std::uint64_t, EventSource*> sources_;
  std::set<std::pair<Clock::time_point, Timer*>> timers_;
  std::vector<std::unique_ptr<Disposable>> disposed_;
};

// Owns a descriptor. Level-triggered.
class EventSource final : public Disposable {
 public:
  using Callback = std::function<void(std::uint32_t events)>;
  EventSource(Loop& loop, os::UniqueFd fd, Callback callback);
  EventSource(const EventSource&) = delete;
  EventSource& operator=(const EventSource&) = delete;
  ~EventSource() override;

  // EPOLLIN, EPOLLOUT; EPOLLHUP: only that it is over. 0: nothing, not even that.
  void Want(std::uint32_t events);
  int fd() const { return fd_.get(); }
  os::UniqueFd Release();

 private:
  friend class Loop;
  Loop& loop_;
  os::UniqueFd fd_;
  std::uint64_t key_;
  std::uint32_t wanted_ = 0;
  Callback callback_;
};

// Calls once, at the time that was set last.
class Timer {
 public:
  Timer(Loop& loop, std::function<void()> callback) : loop_(loop), callback_(std::move(callback)) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { Clear(); }

  void Set(milliseconds from_now);
  void Clear();
  bool is_set() const { return is_set_; }

 private:
  friend class Loop;
  Loop& loop_;
  std::function<void()> callback_;
  Clock::time_point time_;
  bool is_set_ = false;
};

}  // namespace caisson::agent::guest
