// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

namespace caisson::agent::guest {

Loop::Loop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.valid()) std::abort();
}

void Loop::Run() {
  std::array<epoll_event, 64> events;
  for (;;) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), UntilNextTimer());
    if (count < 0 && errno != EINTR) std::abort();
    for (int i = 0; i < count; ++i) {
      // An earlier callback may have ended it.
      const std::uint64_t key = events[i].data.u64;  // the kernel's structure is packed
      const auto found = sources_.find(key);
      if (found == sources_.end()) continue;
      found->second->callback_(events[i].events);
      DropDisposed();
    }
    RunTimers();
  }
}

// What is destroyed may dispose of more.
void Loop::DropDisposed() {
  while (!disposed_.empty()) const auto batch = std::exchange(disposed_, {});
}

void Loop::Retire(std::unique_ptr<EventSource>& source) {
  if (source == nullptr) return;
  source->Want(0);
  Dispose(std::move(source));
}

int Loop::UntilNextTimer() const {
  if (timers_.empty()) return -1;
  const auto left = std::chrono::ceil<milliseconds>(timers_.begin()->first - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
}

// One that sets itself anew, for now, waits until descriptors have had their turn.
void Loop::RunTimers() {
  const auto now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    Timer* timer = timers_.begin()->second;
    timer->Clear();
    timer->callback_();
    DropDisposed();
  }
}

EventSource::EventSource(Loop& loop, os::UniqueFd fd, Callback callback)
    : loop_(loop), fd_(std::move(fd)), key_(++loop.last_key_), callback_(std::move(callback)) {
  loop_.sources_.emplace(key_, this);
}

EventSource::~EventSource() {
  Want(0);
  loop_.sources_.erase(key_);
}

void EventSource::Want(std::uint32_t events) {
  if (events == wanted_ || !fd_.valid()) return;
  epoll_event event{.events = events, .data = {.u64 = key_}};
  const int operation = events == 0 ? EPOLL_CTL_DEL : wanted_ == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  if (::epoll_ctl(loop_.epoll_.get(), operation, fd_.get(), &event) != 0) std::abort();
  wanted_ = events;
}

os::UniqueFd EventSource::Release() {
  Want(0);
  return std::move(fd_);
}

void Timer::Set(milliseconds from_now) {
  Clear();
  // One nanosecond at least: what is set while timers run is not for this turn.
  time_ = Clock::now() + std::max<Clock::duration>(from_now, std::chrono::nanoseconds(1));
  loop_.timers_.emplace(time_, this);
  is_set_ = true;
}

void Timer::Clear() {
  if (is_set_) loop_.timers_.erase({time_, this});
  is_set_ = false;
}

}  // namespace caisson::agent::guest
