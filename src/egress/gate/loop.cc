// SPDX-License-Identifier: Apache-2.0
#include "egress/gate/loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "os/syscall_error.h"

namespace caisson::egress::gate {

Result<Loop> Loop::Make() {
  os::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return os::SyscallError("epoll_create1");
  return Loop(std::move(epoll));
}

Result<void> Loop::Watch(int fd, Lane lane, Handler handler) {
  const std::uint64_t id = ++last_id_;
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {}};
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return os::SyscallError("epoll_ctl");
  }
  ids_[fd] = id;
  watched_[id] = std::make_shared<Watched>(Watched{fd, lane, std::move(handler)});
  return {};
}

void Loop::Forget(int fd) {
  const auto found = ids_.find(fd);
  if (found == ids_.end()) return;
  epoll_event unused{};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, &unused);
  watched_.erase(found->second);
  ids_.erase(found);
}

Loop::TimerId Loop::After(std::chrono::milliseconds delay, Work work) {
  const TimerId timer{Clock::now() + delay, ++last_id_};
  timers_.emplace(timer, std::move(work));
  return timer;
}

bool Loop::HasWork() const {
  return std::ranges::any_of(ranks_, [](const Turns& turns) { return !turns.empty(); });
}

int Loop::Patience() const {
  if (HasWork()) return 0;
  if (timers_.empty()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first.first - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

// All that is ready: what has a low rank must not hide what has a high one.
Result<void> Loop::Collect() {
  std::array<epoll_event, 256> events;
  for (int patience = Patience();; patience = 0) {
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), patience);
    if (count < 0 && errno != EINTR) return os::SyscallError("epoll_wait");
    now_ = Clock::now();
    for (int i = 0; i < count; ++i) {
      const epoll_event event = events[static_cast<std::size_t>(i)];
      Note(event.data.u64, event.events);  // copies: the structure is packed
    }
    if (count < static_cast<int>(events.size())) return {};
  }
}

void Loop::Note(std::uint64_t id, std::uint32_t events) {
  const auto found = watched_.find(id);
  if (found == watched_.end()) return;
  Watched& watched = *found->second;
  const bool is_waiting = watched.events != 0;
  watched.events |= events;
  if (is_waiting) return;
  Soon(watched.lane, [this, id] {
    const auto still = watched_.find(id);
    if (still == watched_.end()) return;  // forgotten meanwhile
    const std::shared_ptr<Watched> held = still->second;
    held->handler(std::exchange(held->events, 0));
  });
}

void Loop::RunTimers() {
  while (!timers_.empty() && timers_.begin()->first.first <= now_ && !stopped_) {
    const Work work = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    work();
  }
}

void Loop::RunRank(Rank rank, Clock::duration most) {
  Turns& turns = TurnsOf(rank);
  now_ = Clock::now();
  const Clock::time_point begun = now_;
  while (!turns.empty() && !stopped_ && now_ - begun < most) {
    turns.Take()();
    now_ = Clock::now();
  }
}

Result<void> Loop::Run() {
  stopped_ = false;
  while (!stopped_) {
    CAISSON_TRY(Collect());
    RunRank(Rank::kControl, Clock::duration::max());
    RunTimers();
    RunRank(Rank::kShort, kTurn);
    RunRank(Rank::kBulk, kTurn);
  }
  return {};
}

}  // namespace caisson::egress::gate
